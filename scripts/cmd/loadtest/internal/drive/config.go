// Package drive puts a running stack under load through its public API, as
// many residents and officials with open screens would.
package drive

import (
	"errors"
	"fmt"
	"time"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/incidents"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

// A Config says how large the city is and how busy.
type Config struct {
	Gateway          string   // address of the stack
	ReportMetrics    []string // addresses of /metrics, one per replica
	PIDs             string   // folder of the stack's pid files, empty if unknown
	Users            int      // residents, who file reports and vote
	Subscribers      int      // residents with an open screen
	Officials        int      // each with an open screen
	ReportsPerUser   int
	VotesPerReport   int
	ChangesPerReport int     // of status
	Rate             float64 // events in a second, on average
	Workers          int     // requests at the same time
	Hot              int     // percent of the votes that go to one report
	Seed             uint64
	Drain            time.Duration // how long to wait for the last notifications
	Limit            time.Duration // for making requests; then the last notifications are awaited
}

// Profiles are the configurations that have a name.
var Profiles = map[string]Config{
	// default is over in half a minute.
	"default": {
		Users: 100, Subscribers: 100, Officials: 2, ReportsPerUser: 3, VotesPerReport: 7, ChangesPerReport: 2,
		Rate: 100, Workers: 64, Hot: 10, Drain: time.Minute, Limit: 10 * time.Minute,
	},
	// 2.5m writes two and a half million notifications within half an hour.
	"2.5m": {
		Users: 1000, Subscribers: 1000, Officials: 4, ReportsPerUser: 250, VotesPerReport: 7, ChangesPerReport: 2,
		Rate: 1400, Workers: 256, Hot: 10, Drain: 3 * time.Minute, Limit: 45 * time.Minute,
	},
	// insane is more than one small machine can take: it shows what gives way,
	// and that nothing is lost even so.
	"insane": {
		Users: 2000, Subscribers: 2000, Officials: 8, ReportsPerUser: 18, VotesPerReport: 7, ChangesPerReport: 2,
		Rate: 3000, Workers: 512, Hot: 20, Drain: 10 * time.Minute, Limit: 30 * time.Minute,
	},
}

// Events returns how many events a run asks for.
func (c *Config) Events() int {
	return c.Users * c.ReportsPerUser * (1 + c.VotesPerReport + c.ChangesPerReport)
}

// Check reports every fault at once.
func (c *Config) Check() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(c.Users >= 2, "users: must be at least 2, since nobody votes on their own report, got %d", c.Users)
	check(c.Subscribers >= 0 && c.Subscribers <= c.Users, "subscribers: must be 0 to the number of users, got %d", c.Subscribers)
	check(c.Officials >= 1 && c.Officials <= city.MaxScreens, "officials: must be 1 to %d, got %d", city.MaxScreens, c.Officials)
	check(c.ReportsPerUser >= 1, "reports-per-user: must be at least 1, got %d", c.ReportsPerUser)
	check(c.VotesPerReport >= 0, "votes-per-report: must be 0 or more, got %d", c.VotesPerReport)
	check(c.ChangesPerReport >= 0, "status-changes: must be 0 or more, got %d", c.ChangesPerReport)
	check(c.Rate > 0, "rate: must be more than 0, got %g", c.Rate)
	check(c.Workers >= 1, "workers: must be at least 1, got %d", c.Workers)
	check(c.Hot >= 0 && c.Hot <= 100, "hot: must be 0 to 100 percent, got %d", c.Hot)
	return errors.Join(faults...)
}

// pattern returns when the requests are due.
func (c *Config) pattern() incidents.Pattern {
	return incidents.Pattern{Events: c.Events(), Rate: c.Rate, Seed: c.Seed}
}
