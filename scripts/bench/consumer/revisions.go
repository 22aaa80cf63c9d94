package main

import (
	"fmt"
	"slices"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// revisions are the base and ours for each kind of load, one after the other, and
// in every second pass ours first.
func (b *bench) revisions(pass int) []contestant {
	all := load{messages: b.messages}
	failing := load{messages: b.failing, failing: b.failing / 10}
	var list []contestant
	for _, kind := range []struct {
		name string
		load load
		args []string
	}{
		{"no effect", all, []string{"-effect=nothing"}},
		{"record", all, []string{"-effect=record"}},
		{"whole effect", all, []string{"-effect=whole"}},
		{"four workers", all, []string{"-effect=whole", "-workers=4"}},
		{"10 % fail", failing, []string{"-effect=record"}},
	} {
		pair := []contestant{
			{"base, " + kind.name, kind.load, b.ours(b.base, b.before, kind.args...)},
			{"ours, " + kind.name, kind.load, b.ours(b.program, b.database, kind.args...)},
		}
		if pass%2 == 1 {
			slices.Reverse(pair)
		}
		list = append(list, pair...)
	}
	return list
}

// compare prints how many times the base's rate ours has, by kind of load.
func (b *bench) compare() error {
	pairs := b.revisions(0)
	fmt.Fprintln(b.out, "\nours over the base: median of the passes, least and most")
	ratios := make([]any, 0, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		base, ours := b.values(pair[0].name, result.perSecond), b.values(pair[1].name, result.perSecond)
		spread := stats.Ratios(ours, base)
		fmt.Fprintf(b.out, "%-20s %.2f  %.2f to %.2f\n", pair[1].name, stats.Median(spread), slices.Min(spread), slices.Max(spread))
		ratios = append(ratios, stats.Median(spread))
	}
	_, err := fmt.Fprintf(b.out, "drain_ratio=%.2f record_ratio=%.2f effect_ratio=%.2f four_workers_ratio=%.2f failing_ratio=%.2f\n", ratios...)
	return err
}
