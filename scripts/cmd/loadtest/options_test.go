package main

import (
	"io"
	"testing"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	type size struct{ users, subscribers, reports, votes int }
	for _, tt := range []struct {
		name string
		args []string
		want size
	}{
		{"a profile", []string{"-profile", "2.5m"}, size{1000, 1000, 250, 7}},
		{"a small city", []string{"-users", "20"}, size{20, 20, 3, 7}},
		{"as PowerShell spells it", []string{"-Users", "50", "-ReportsPerUser", "4", "-VotesPerReport", "5"}, size{50, 50, 4, 5}},
		{"ten times what stands behind", []string{"-Insane", "-Users", "50", "-ReportsPerUser", "4", "-VotesPerReport", "5"}, size{500, 100, 40, 50}},
		{"ten times what stands before", []string{"-profile", "2.5m", "-reports-per-user", "1", "-insane"}, size{10000, 1000, 10, 70}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, err := parse(append([]string{"-stack", t.TempDir()}, tt.args...), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if got := (size{o.Users, o.Subscribers, o.ReportsPerUser, o.VotesPerReport}); got != tt.want {
				t.Errorf("%v: %+v, want %+v", tt.args, got, tt.want)
			}
		})
	}
	calm, _ := parse([]string{"-stack", t.TempDir(), "-profile", "2.5m"}, io.Discard)
	insane, _ := parse([]string{"-stack", t.TempDir(), "-profile", "2.5m", "-Insane"}, io.Discard)
	if insane.Rate != 10*calm.Rate || insane.Limit != calm.Limit {
		t.Errorf("-Insane makes %g requests a second for %v, must be ten times %g for %v", insane.Rate, insane.Limit, calm.Rate, calm.Limit)
	}
	if _, err := parse([]string{"-stack", t.TempDir(), "-users", "20", "-subscribers", "30"}, io.Discard); err == nil {
		t.Error("more screens than residents were accepted")
	}
}
