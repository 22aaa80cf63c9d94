// Package config is the environment of report-service as a checked Config.
// docs/configuration.md describes each variable; a test keeps the two together.
package config

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

// A Config is the configuration of report-service.
type Config struct {
	Address
	config.Service
	Auth      auth.Config
	Relay     relay.Config
	Retention upkeep.Retention
	Photos

	// Words is how long after its end a report keeps what people wrote.
	Words retention.Period `env:"REPORT_WORDS_RETENTION" envDefault:"never" example:"1095d"`

	// City is where reports may be; everywhere without it. The page reads it too.
	City *report.Box `env:"MAP_BOUNDS" example:"106.777,-6.604,106.934,-6.444"`

	// CityName is what the city calls itself, and Languages are those of its residents,
	// the first of which messages use. The page reads them too.
	CityName  config.CityName  `env:"CITY_NAME" envDefault:"CityConnect" example:"Kota Bogor"`
	Languages config.Languages `env:"CITY_LANGUAGES" envDefault:"en,id" example:"id,en"`

	// CityWords is the folder with the city's words in languages besides ours, of which
	// previews use those of statuses. The page reads it too.
	CityWords string `env:"CITY_WORDS" example:"/srv/words"`

	// Comments says whether residents comment on reports. The page reads it too.
	Comments config.Switch `env:"COMMENTS" envDefault:"off" example:"on"`

	// Open311 says whether applications of others read and file reports by Open311, and
	// Open311PerKey how often each may file.
	Open311       config.Switch   `env:"OPEN311" envDefault:"off" example:"on"`
	Open311PerKey ratelimit.Limit `envDefault:"600/1h"`

	// QuestionDays is on how many days the city works until a reporter must have answered.
	QuestionDays int `env:"QUESTION_DAYS" envDefault:"10" example:"5"`
	// VerdictDays is for how many working days reporters may say whether what was resolved
	// is fixed, and ResolveNeedsPhoto says whether only that is resolved which has a photo of
	// the finished work.
	VerdictDays       int           `env:"VERDICT_DAYS" envDefault:"10"`
	ResolveNeedsPhoto config.Switch `env:"RESOLVE_NEEDS_PHOTO" envDefault:"off" example:"on"`

	// GuestReports is how many reports a guest files in a day, GuestsPerAddress how many
	// guests come from an address, and the others say what guests may do besides.
	GuestReports     int             `env:"GUEST_REPORTS" envDefault:"5"`
	GuestsPerAddress ratelimit.Limit `env:"GUESTS_PER_ADDRESS" envDefault:"20/1h"`
	GuestVotes       config.Switch   `env:"GUEST_VOTES" envDefault:"off" example:"on"`
	GuestComments    config.Switch   `env:"GUEST_COMMENTS" envDefault:"off" example:"on"`

	ReportsPerUser  ratelimit.Limit `env:"REPORTS_PER_USER" envDefault:"60/1h"`
	VotesPerUser    ratelimit.Limit `env:"VOTES_PER_USER" envDefault:"60/1m"`
	CommentsPerUser ratelimit.Limit `env:"COMMENTS_PER_USER" envDefault:"20/1h"`
}

// maxQuestionDays is a quarter of a year: the clock of a report stands still as long.
const maxQuestionDays = 60

// maxVerdictDays is so many working days that nobody remembers what it was like before.
const maxVerdictDays = 90

// minWords is longer than anybody works on a closed report, or appeals.
const minWords = 365 * 24 * time.Hour

// maxGuestReports is far above what a person sees in a day.
const maxGuestReports = 100

// An Address is where report-service listens, and where it does for
// operators alone.
type Address struct {
	Addr       string `env:"HTTP_ADDR" envDefault:"127.0.0.1:3002"`
	Operations string `env:"OPERATIONS_ADDR" envDefault:"127.0.0.1:3012"`
}

// Load reads and checks the environment. Its error lists all faults by the
// names of the variables, and shows no secret.
func Load(getenv func(string) string) (cfg Config, err error) {
	err = config.Load(&cfg, getenv, cfg.validate)
	return cfg, err
}

// Addr reads only where report-service listens.
func Addr(getenv func(string) string) (string, error) {
	var a Address
	err := config.Load(&a, getenv, nil)
	return a.Addr, err
}

func (c *Config) validate() []config.Fault {
	c.Auth.Addr = c.Addr
	var days config.Faults
	days.Check(c.QuestionDays >= 1 && c.QuestionDays <= maxQuestionDays, "QUESTION_DAYS", fmt.Sprintf("a number of working days from 1 to %d", maxQuestionDays))
	days.Check(c.VerdictDays >= 0 && c.VerdictDays <= maxVerdictDays, "VERDICT_DAYS", fmt.Sprintf("0 to %d, such as 10", maxVerdictDays))
	days.Check(!bool(c.ResolveNeedsPhoto) || c.PhotoStore != "", "RESOLVE_NEEDS_PHOTO", "off without PHOTO_STORE")
	days.Check(c.GuestReports >= 1 && c.GuestReports <= maxGuestReports, "GUEST_REPORTS", fmt.Sprintf("1 to %d, such as 5", maxGuestReports))
	days.Check(c.Words == 0 || time.Duration(c.Words) >= minWords, "REPORT_WORDS_RETENTION", "never, or at least 365d")
	days.Check(c.Words == 0 || c.PhotoStore != "", "REPORT_WORDS_RETENTION", "never without PHOTO_STORE, which has the archive")
	if c.CityWords != "" {
		_, err := os.ReadDir(c.CityWords)
		days.Check(err == nil, "CITY_WORDS", "a folder that can be read, with files as `make words` writes them")
	}
	return slices.Concat(days, config.ValidateAddr("HTTP_ADDR", c.Addr), config.ValidateAddr("OPERATIONS_ADDR", c.Operations),
		c.Service.Validate(), c.Auth.Validate(), c.Relay.Validate(), c.Photos.validate())
}
