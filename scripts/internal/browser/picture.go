package browser

import (
	"bytes"
	"context"
	"fmt"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// pictureQuality keeps text crisp and a picture small.
const pictureQuality = 82

// Picture returns what the tab shows as WebP.
func (t *Tab) Picture() ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	quality := int64(pictureQuality)
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Format: page.CaptureScreenshotFormatWebp, Quality: &quality,
	})
	if err != nil {
		return nil, fmt.Errorf("take a picture: %w", err)
	}
	return shot.Data, nil
}

// Sheets returns how many sheets of A4 the tab takes on paper.
func (t *Tab) Sheets() (int, error) {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	printed, err := chromedp.Call(ctx, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: 8.27, PaperHeight: 11.69})
	if err != nil {
		return 0, fmt.Errorf("print: %w", err)
	}
	return bytes.Count(printed.Data, []byte("/Type /Page\n")), nil
}
