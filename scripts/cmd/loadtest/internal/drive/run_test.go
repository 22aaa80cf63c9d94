package drive

import (
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/result"
)

func small(gateway string) *Config {
	return &Config{
		Gateway: gateway, Users: 10, Subscribers: 10, Officials: 2, ReportsPerUser: 2, VotesPerReport: 6, ChangesPerReport: 2,
		Rate: 2000, Workers: 8, Hot: 10, Seed: 1, Drain: time.Minute, Limit: 10 * time.Minute,
	}
}

func whole(number int) []int { return []int{number} }

// An instrument that notices nothing would find every system good.
func TestRunNotices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		spoil         func(number int) []int
		lost, doubled bool
	}{
		{"nothing", whole, false, false},
		{"a loss", func(n int) []int {
			if n == 3 {
				return nil
			}
			return []int{n}
		}, true, false},
		{"a double", func(n int) []int {
			if n == 3 {
				return []int{n, n}
			}
			return []int{n}
		}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := small(newFakeCity(t, tt.spoil))
			if tt.lost {
				cfg.Drain = 2 * time.Second // it never comes
			}
			r, err := Run(t.Context(), cfg, func(string) {}, func(result.Point) {})
			if err != nil {
				t.Fatal(err)
			}
			lost, doubled := r.Audit.Lost > 0 && r.Screens.Missing > 0, r.Audit.Doubled > 0 && r.Screens.Doubled > 0
			if lost != tt.lost || doubled != tt.doubled || r.Good() == (tt.lost || tt.doubled) {
				t.Errorf("audit %+v, screens %+v: want lost %v, doubled %v", r.Audit, r.Screens, tt.lost, tt.doubled)
			}
			// Each of 20 filings is on two screens, all else on one.
			if r.Audit.Accepted+r.Skipped != 180 || r.Audit.Expected != r.Audit.Accepted+20 {
				t.Errorf("%d of 180 events accepted, %d skipped, %d notifications expected", r.Audit.Accepted, r.Skipped, r.Audit.Expected)
			}
		})
	}
}

// At the limit no request is begun; what was accepted is still awaited and counted, and
// its answers are not errors.
func TestRunEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	cfg := small(newFakeCity(t, whole))
	cfg.ReportsPerUser, cfg.Rate, cfg.Limit = 1_000_000, 500, time.Second
	r, err := Run(t.Context(), cfg, func(string) {}, func(result.Point) {})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Cut || !r.Good() || len(r.Errors) > 0 {
		t.Errorf("cut: %t, errors %v, audit %+v", r.Cut, r.Errors, r.Audit)
	}
}

// The list of a user without a screen is read in the end.
func TestRunReadsTheListsOfThoseWithoutAScreen(t *testing.T) {
	t.Parallel()
	cfg := small(newFakeCity(t, whole))
	cfg.Subscribers = 3
	r, err := Run(t.Context(), cfg, func(string) {}, func(result.Point) {})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Good() || r.Screens.Open != 5 || r.Screens.Received == r.Audit.Once {
		t.Errorf("audit %+v, screens %+v: want all found, not all of it on 5 screens", r.Audit, r.Screens)
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	for name, cfg := range Profiles {
		if err := cfg.Check(); err != nil {
			t.Errorf("profile %s: %v", name, err)
		}
	}
	err := (&Config{Users: 1, Subscribers: 2, VotesPerReport: -1, ChangesPerReport: -1, Hot: 101}).Check()
	for _, flag := range []string{"users", "subscribers", "officials", "reports-per-user", "votes-per-report", "status-changes", "rate", "workers", "hot"} {
		if !strings.Contains(err.Error(), flag+": must be") {
			t.Errorf("%v does not tell about %s", err, flag)
		}
	}
}

func TestProfileOfTwoAndAHalfMillion(t *testing.T) {
	t.Parallel()
	cfg := Profiles["2.5m"]
	if planned := cfg.pattern().Duration(); cfg.Events() != 2_500_000 || planned > 30*time.Minute || cfg.Subscribers != 1000 {
		t.Errorf("got %d events in %v on %d screens", cfg.Events(), planned, cfg.Subscribers)
	}
}
