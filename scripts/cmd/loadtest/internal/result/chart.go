package result

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// The size of a chart, and of the room for its labels.
const (
	chartWidth, chartHeight = 720.0, 240.0
	marginLeft, marginBelow = 56.0, 22.0
	marginAbove             = 8.0
)

// palette is told apart by people with any kind of colour vision.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"}

// A series is one line of a chart.
type series struct {
	Name   string
	Colour string
	x, y   []float64
}

// A chart shows series over the seconds of a run.
type chart struct {
	Title  string
	Unit   string
	Series []*series
}

// add appends a point to the series of that name.
func (c *chart) add(name string, x, y float64) {
	i := slices.IndexFunc(c.Series, func(s *series) bool { return s.Name == name })
	if i < 0 {
		i = len(c.Series)
		c.Series = append(c.Series, &series{Name: name, Colour: palette[i%len(palette)]})
	}
	c.Series[i].x = append(c.Series[i].x, x)
	c.Series[i].y = append(c.Series[i].y, y)
}

// SVG draws the chart.
func (c *chart) SVG() template.HTML {
	maxX, maxY := 1e-9, 1e-9
	for _, s := range c.Series {
		maxX, maxY = max(maxX, slices.Max(s.x)), max(maxY, slices.Max(s.y))
	}
	step := niceStep(maxY / 4)
	top := step * math.Ceil(maxY/step)
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(c.Title))
	for y := 0.0; y <= top*1.001; y += step {
		at := placeY(y, top)
		fmt.Fprintf(&svg, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%g</text>`,
			marginLeft, chartWidth, at, at, marginLeft-6, at+4, round(y))
	}
	for x, step := 0.0, niceStep(maxX/8); x <= maxX; x += step {
		fmt.Fprintf(&svg, `<text x="%.1f" y="%g" text-anchor="middle">%g</text>`, placeX(x, maxX), chartHeight-4, round(x))
	}
	for _, s := range c.Series {
		fmt.Fprintf(&svg, `<polyline fill="none" stroke="%s" stroke-width="1.6" points="`, s.Colour)
		for i := range s.x {
			fmt.Fprintf(&svg, "%.1f,%.1f ", placeX(s.x[i], maxX), placeY(s.y[i], top))
		}
		svg.WriteString(`"/>`)
	}
	svg.WriteString("</svg>")
	return template.HTML(svg.String()) //nolint:gosec // numbers, and a title that is escaped
}

func placeX(x, maxX float64) float64 { return marginLeft + (chartWidth-marginLeft-12)*x/maxX }

func placeY(y, top float64) float64 {
	return chartHeight - marginBelow - (chartHeight-marginBelow-marginAbove)*y/top
}

// niceStep returns the next of 1, 2 and 5 with zeros.
func niceStep(atLeast float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(atLeast)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= atLeast {
			return n * power
		}
	}
	return 10 * power
}

// round takes away what floating point has added.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }
