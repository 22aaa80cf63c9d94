package asset

import (
	"bytes"
	"encoding/xml"
	"fmt"

	"github.com/skip2/go-qrcode"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A sheet is a page of A4 with SheetSize codes. A phone reads a code from ten times its width:
// these are read from half a metre.
const (
	// SheetSize is how many codes a sheet has.
	SheetSize = sheetColumns * 4

	sheetColumns = 3
	codeSize     = 50.0 // millimetres, as all that follow
	cellWidth    = 65.0
	cellHeight   = 70.0
	sideMargin   = 7.5
	topMargin    = 8.5
)

// Sheet returns an SVG with a code for each of some things, at most SheetSize. A code is the
// address of the form for a report on the thing, below origin; under it are the thing's name,
// its layer and code, and the city's name.
func Sheet(city, origin string, things []report.PlacedAsset) ([]byte, error) {
	var svg bytes.Buffer
	svg.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" width="210mm" height="297mm" viewBox="0 0 210 297" font-family="sans-serif" text-anchor="middle">` + "\n")
	svg.WriteString(`<rect width="210" height="297" fill="#fff"/>` + "\n")
	for i, thing := range things {
		code, err := qrcode.New(origin+"/new?asset="+thing.Key, qrcode.Medium)
		if err != nil {
			return nil, fmt.Errorf("make code: %w", err)
		}
		code.DisableBorder = true // the cell has more white around it than a reader needs
		fmt.Fprintf(&svg, `<g transform="translate(%g %g)">`, sideMargin+cellWidth*float64(i%sheetColumns), topMargin+cellHeight*float64(i/sheetColumns))
		writeCode(&svg, code.Bitmap())
		writeLine(&svg, 57, 4.5, thing.Key)
		writeLine(&svg, 61.5, 3.2, thing.Name)
		writeLine(&svg, 65.5, 3.2, city)
		svg.WriteString("</g>\n")
	}
	svg.WriteString("</svg>\n")
	return svg.Bytes(), nil
}

// writeCode draws the dark modules of a code, row by row.
func writeCode(svg *bytes.Buffer, modules [][]bool) {
	fmt.Fprintf(svg, `<path transform="translate(%g 0) scale(%.6f)" shape-rendering="crispEdges" d="`, (cellWidth-codeSize)/2, codeSize/float64(len(modules)))
	for y, row := range modules {
		for x := 0; x < len(row); x++ {
			begin := x
			for x < len(row) && row[x] {
				x++
			}
			if x > begin {
				fmt.Fprintf(svg, "M%d %dh%dv1h-%dz", begin, y, x-begin, x-begin)
			}
		}
	}
	svg.WriteString(`"/>`)
}

// writeLine writes a text in the middle of a cell, squeezed where it is too long for it.
func writeLine(svg *bytes.Buffer, y, size float64, text string) {
	const width = 60.0
	squeeze := ""
	if float64(len([]rune(text)))*size*0.6 > width {
		squeeze = fmt.Sprintf(` textLength="%g" lengthAdjust="spacingAndGlyphs"`, width)
	}
	fmt.Fprintf(svg, `<text x="%g" y="%g" font-size="%g"%s>`, cellWidth/2, y, size, squeeze)
	_ = xml.EscapeText(svg, []byte(text)) // a buffer takes everything
	svg.WriteString(`</text>`)
}
