package result

import (
	_ "embed"
	"html/template"
	"io"
	"maps"
	"slices"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes a page with charts. It fetches nothing from anywhere.
func (r *Result) WriteHTML(w io.Writer) error {
	return page.Execute(w, map[string]any{"R": r, "Legs": r.legs(), "Charts": r.charts(), "Line": r.Line()})
}

func (r *Result) charts() []*chart {
	rates := &chart{Title: "Rates", Unit: "in a second"}
	screen := &chart{Title: "Request to screen", Unit: "ms"}
	answer := &chart{Title: "Request to answer", Unit: "ms"}
	waiting := &chart{Title: "On the way", Unit: "events"}
	cores := &chart{Title: "Processor", Unit: "cores"}
	memory := &chart{Title: "Memory, without what processes share", Unit: "MiB"}
	for _, p := range r.Points {
		rates.add("requests due", p.Second, p.Planned)
		rates.add("accepted", p.Second, p.Accepted)
		rates.add("notifications shown", p.Second, p.Received)
		waiting.add("notifications expected", p.Second, float64(p.Outstanding))
		waiting.add("pending in the outbox", p.Second, float64(max(0, p.Pending)))
		if p.Screen.Count > 0 {
			screen.add("p50", p.Second, p.Screen.P50)
			screen.add("p99", p.Second, p.Screen.P99)
		}
		if p.Answer.Count > 0 {
			answer.add("p50", p.Second, p.Answer.P50)
			answer.add("p99", p.Second, p.Answer.P99)
		}
		for _, name := range slices.Sorted(maps.Keys(p.Processes)) {
			cores.add(name, p.Second, p.Processes[name].Cores)
			memory.add(name, p.Second, p.Processes[name].MiB)
		}
	}
	return slices.DeleteFunc([]*chart{rates, screen, answer, waiting, cores, memory},
		func(c *chart) bool { return len(c.Series) == 0 })
}
