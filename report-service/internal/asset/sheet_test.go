package asset_test

import (
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"github.com/cityconnect/cityconnect/report-service/internal/asset"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Another library reads the code of each thing on a full sheet, at the resolution of a
// phone's camera half a metre away, and each module has a millimetre at least.
func TestSheetIsReadable(t *testing.T) {
	t.Parallel()
	const origin = "https://reports.a-city-with-a-long-name.example.org"
	things := make([]report.PlacedAsset, asset.SheetSize)
	for i := range things {
		things[i].Key = fmt.Sprintf("street-lamps/%s%d", strings.Repeat("L", 3*i), i)
		things[i].Name = `Lamp <"7"> & 8`
	}
	sheet, err := asset.Sheet("Kota Bogor & more", origin, things)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(sheet, new(struct{ XMLName xml.Name })); err != nil {
		t.Errorf("the sheet is not XML: %v", err)
	}
	cells := regexp.MustCompile(`<g transform="translate\((\S+) (\S+)\)"><path transform="translate\((\S+) 0\) scale\((\S+)\)"[^>]* d="([^"]*)"/>(.*)</g>`).FindAllStringSubmatch(string(sheet), -1)
	if len(cells) != len(things) {
		t.Fatalf("%d codes, want %d", len(cells), len(things))
	}
	for i, cell := range cells {
		x, y := number(t, cell[1])+number(t, cell[3]), number(t, cell[2])
		if module := number(t, cell[4]); module < 1 || x < 5 || x+50 > 205 || y < 5 || y+70 > 292 {
			t.Errorf("code %d: modules of %.2f mm at %g, %g", i, module, x, y)
		}
		if got := decode(t, cell[5], number(t, cell[4])); got != origin+"/new?asset="+things[i].Key {
			t.Errorf("code %d is %q", i, got)
		}
		if words := cell[6]; !strings.Contains(words, things[i].Key) || !strings.Contains(words, "Kota Bogor &amp; more") {
			t.Errorf("code %d: the words are %s", i, words)
		}
	}
}

// decode reads a code as a camera shows it that is half a metre away: a picture of 4,000
// pixels for 500 mm, of which a phone takes half.
func decode(t *testing.T, path string, module float64) string {
	t.Helper()
	const pixels, margin = 4.0, 30
	img := image.NewGray(image.Rect(0, 0, 50*pixels+2*margin, 50*pixels+2*margin))
	for i := range img.Pix {
		img.Pix[i] = 0xFF
	}
	for _, run := range regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1`).FindAllStringSubmatch(path, -1) {
		x, y, width := number(t, run[1])*module*pixels, number(t, run[2])*module*pixels, number(t, run[3])*module*pixels
		for px := int(x + 0.5); px < int(x+width+0.5); px++ {
			for py := int(y + 0.5); py < int(y+module*pixels+0.5); py++ {
				img.SetGray(px+margin, py+margin, color.Gray{})
			}
		}
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(img)
	if err != nil {
		t.Fatal(err)
	}
	found, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found.GetText()
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
