package testbed

import (
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// Turns yields each side once in each pass, so that whatever else the machine does
// meets all sides alike. Who is first alternates: whoever comes second finds a
// machine that tidies up after the first.
func Turns(passes, sides int) iter.Seq2[int, int] {
	return func(yield func(pass, side int) bool) {
		for pass := range passes {
			for side := range sides {
				if pass%2 == 1 {
					side = sides - 1 - side
				}
				if !yield(pass, side) {
					return
				}
			}
		}
	}
}

// Figures are the last line of a benchmark, which is compared over time.
type Figures []string

// Add adds a figure with so many digits behind the point.
func (f *Figures) Add(name string, digits int, value float64) {
	*f = append(*f, fmt.Sprintf("%s=%.*f", name, digits, value))
}

// AddRatio adds the median of the ratios of ours to theirs, pass by pass, and says
// how far they are apart.
func (f *Figures) AddRatio(name string, ours, theirs []float64) {
	ratios := stats.Ratios(ours, theirs)
	fmt.Fprintf(os.Stderr, "%s: %.2f to %.2f\n", name, slices.Min(ratios), slices.Max(ratios))
	f.Add(name, 2, stats.Median(ratios))
}

// Print prints the line.
func (f *Figures) Print() { fmt.Println(strings.Join(*f, " ")) }
