package relay

import (
	"time"

	"github.com/cityconnect/cityconnect/platform/config"
)

// A Config is what an operator may tune. Fields without a variable fit a broker and
// a database in the same data centre, and are the same everywhere but in tests.
type Config struct {
	// Window is how many messages wait for their confirm at most. The client's
	// bookkeeping grows with it; above 1,024 it costs more than it gains.
	Window int `envDefault:"512"`
	// ConfirmTimeout closes the connection when the broker has been silent for
	// so long.
	ConfirmTimeout time.Duration `envDefault:"15s"`

	// MaxAttempts is how many refusals make a message fail.
	MaxAttempts int           `envDefault:"5"`
	RetryMin    time.Duration `envDefault:"500ms"`
	RetryMax    time.Duration `envDefault:"60s"`

	// Lease is how long the shards of a replica that hangs stay its own. It is
	// renewed when a third has passed, and publishing stops when two thirds have.
	// The shards of a replica that dies are taken over within two seconds, except
	// behind a pooler that does not keep sessions.
	Lease time.Duration `env:"RELAY_LEASE" envDefault:"14s"`

	// PollMin to PollMax is the interval of reads without a wake-up: they find
	// rows whose wake-up was lost, or that another program wrote.
	PollMin time.Duration `envDefault:"50ms"`
	PollMax time.Duration `envDefault:"1s"`

	// Retention is how long published rows are kept.
	Retention time.Duration `env:"RELAY_RETENTION" envDefault:"72h"`
}

// Defaults returns the configuration of an empty environment.
func Defaults() Config {
	var c Config
	if err := config.Load(&c, func(string) string { return "" }, nil); err != nil {
		panic(err) // a tag above is wrong
	}
	return c
}

// Validate returns all faults of c.
func (c Config) Validate() []config.Fault {
	var faults config.Faults
	faults.Check(c.Lease >= 3*time.Second, "RELAY_LEASE", "3s or more, such as 14s")
	faults.Check(c.Retention >= time.Hour, "RELAY_RETENTION", "1h or more, such as 72h")
	return faults
}

// margin is what remains of a lease when publishing stops.
func (c Config) margin() time.Duration { return c.Lease / 3 }

// heartbeat makes the broker close the connection of a paused replica before
// its shards can be another's: the broker waits for up to three heartbeats. So
// even a write that was interrupted between the check and the socket has no
// effect. A longer one would not fit into the margin. A starved machine may lose
// connections by it; reads take what came in time (rabbit.deadlineConn), and begin at
// another shard each time, so that no shard is always the last.
func (c Config) heartbeat() time.Duration {
	return max(time.Second, (c.margin() / 4).Truncate(time.Second))
}
