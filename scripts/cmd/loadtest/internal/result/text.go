package result

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteJSON writes everything that is known.
func (r *Result) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(r)
}

// WriteText writes the result for a terminal; its last line is for other
// programs.
func (r *Result) WriteText(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s: %d requests planned, %d accepted in %.1f s (%.1f a second)\n",
		r.Title, r.Planned, r.Audit.Accepted, r.Seconds, r.AcceptedPerSecond())
	fmt.Fprintf(&text, "machine: %s\n", list(r.Machine))
	fmt.Fprintf(&text, "settings: %s\n", list(r.Settings))
	if r.Cut {
		fmt.Fprintln(&text, "ENDED BY ITS LIMIT, before the last request was made")
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&text, "%d requests were due while no report was open for them\n", r.Skipped)
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nlatency, ms\tcount\tp50\tp90\tp99\tp99.9\tmax")
	for _, l := range r.legs() {
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", l.Name, l.Count, l.P50, l.P90, l.P99, l.P999, l.Max)
	}
	fmt.Fprintln(table, "\nprocess\tcores\tMiB\tpeak MiB\tgrowth")
	for _, c := range r.Consumptions() {
		fmt.Fprintf(table, "%s\t%.2f\t%.0f\t%.0f\t%.1f %%\n", c.Name, c.Cores, c.MiB, c.Peak, c.Growth)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	r.writeErrors(&text)
	r.writeAudit(&text)
	fmt.Fprintln(&text, r.Line())
	_, err := io.WriteString(w, text.String())
	return err
}

// list prints a map in the order of its names.
func list[T any](m map[string]T) string {
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fields = append(fields, fmt.Sprintf("%s %v", name, m[name]))
	}
	return strings.Join(fields, ", ")
}

// legs are all that have times.
func (r *Result) legs() []Leg {
	all := slices.Clone(r.Legs)
	for _, l := range r.Answers {
		l.Name = "  answer to " + l.Name
		all = append(all, l)
	}
	return slices.DeleteFunc(all, func(l Leg) bool { return l.Count == 0 })
}

func (r *Result) writeErrors(w io.Writer) {
	if len(r.Errors) == 0 {
		fmt.Fprintln(w, "\nno errors")
		return
	}
	fmt.Fprintln(w, "\nerrors")
	for _, name := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(w, "  %8d  %s\n", r.Errors[name], name)
	}
}

func (r *Result) writeAudit(w io.Writer) {
	a, s := r.Audit, r.Screens
	fmt.Fprintf(w, "\naudit: %d events accepted, %d notifications expected, %d shown once, %d lost, %d doubled, %d astray\n",
		a.Accepted, a.Expected, a.Once, a.Lost, a.Doubled, a.Astray)
	if a.Unanswered > 0 {
		fmt.Fprintf(w, "       %d more belong to requests without an answer, or to others on this stack\n", a.Unanswered)
	}
	fmt.Fprintf(w, "screens: %d, opened %d times, %d notifications, %d numbers missing, %d doubled, %d out of order, %d resets\n\n",
		s.Open, s.Connections, s.Received, s.Missing, s.Doubled, s.OutOfOrder, s.Resets)
}
