package sse

import (
	"math/rand/v2"
	"time"

	"github.com/cityconnect/cityconnect/platform/config"
)

// A Config has the limits of a Hub, by environment.
type Config struct {
	// Heartbeat is the longest silence on a stream, give or take a tenth.
	Heartbeat time.Duration `env:"STREAM_HEARTBEAT" envDefault:"20s"`
	// Lifetime is that of a connection, give or take a fifth.
	Lifetime time.Duration `env:"STREAM_LIFETIME" envDefault:"30m"`
	// DrainWindow is what closing all connections may take before the end.
	DrainWindow time.Duration `env:"DRAIN_WINDOW" envDefault:"20s"`
	// WriteTimeout is how long a client may take nothing.
	WriteTimeout time.Duration `env:"STREAM_WRITE_TIMEOUT" envDefault:"5s"`
	// CompareEvery is the time between two comparisons with the database.
	CompareEvery time.Duration `env:"STREAM_COMPARE_EVERY" envDefault:"30s"`
	// MaxStreams bounds the connections of this replica. Further clients are
	// told to come back later.
	MaxStreams int `env:"STREAM_MAX" envDefault:"20000"`
	// MaxPerUser bounds those of one user. The oldest makes room.
	MaxPerUser int `env:"STREAM_MAX_PER_USER" envDefault:"8"`
	// Writer says who writes to the clients.
	Writer Writer `env:"STREAM_WRITER" envDefault:"shared"`
}

// A Writer is a way of writing to clients.
type Writer string

// The writers. Shared ones take over plain HTTP/1.1 connections and leave the
// rest to PerRequest, which has a goroutine for each client.
const (
	Shared     Writer = "shared"
	PerRequest Writer = "per-request"
)

// Validate returns everything that is wrong with c.
func (c Config) Validate() []config.Fault {
	var faults config.Faults
	faults.Check(c.Heartbeat >= 100*time.Millisecond && c.Heartbeat <= time.Minute,
		"STREAM_HEARTBEAT", "100ms to 1m, such as 20s")
	faults.Check(c.Lifetime >= time.Second && c.Lifetime <= 24*time.Hour,
		"STREAM_LIFETIME", "1s to 24h, such as 30m")
	faults.Check(c.DrainWindow >= 0 && c.DrainWindow <= 5*time.Minute,
		"DRAIN_WINDOW", "0s to 5m, such as 20s")
	faults.Check(c.WriteTimeout >= 100*time.Millisecond && c.WriteTimeout <= time.Minute,
		"STREAM_WRITE_TIMEOUT", "100ms to 1m, such as 5s")
	faults.Check(c.CompareEvery >= 100*time.Millisecond && c.CompareEvery <= time.Hour,
		"STREAM_COMPARE_EVERY", "100ms to 1h, such as 30s")
	faults.Check(c.MaxStreams > 0, "STREAM_MAX", "a positive number, such as 20000")
	faults.Check(c.MaxPerUser > 0, "STREAM_MAX_PER_USER", "a positive number, such as 8")
	faults.Check(c.Writer == Shared || c.Writer == PerRequest,
		"STREAM_WRITER", "shared or per-request")
	return faults
}

const (
	// maxBehind is how many notifications a client may be behind and still be
	// sent them one by one; fetching the list anew is cheaper for both then.
	maxBehind = 1000
	// pageRows is read from the database at once for a client.
	pageRows = 100
	// openTimeout bounds what it takes to open a stream. Whoever cannot be
	// served within it is told to come back.
	openTimeout = 10 * time.Second
	// lingering is how long a topic without clients is kept, so that those who
	// come back find their events in its ring.
	lingering = 30 * time.Second
	// drainRate is how many clients a second may be sent away without anyone
	// noticing that they come back elsewhere.
	drainRate = 500
)

// A span is a range that something random is taken from, so that what began
// together does not stay together.
type span struct{ from, to time.Duration }

func (s span) pick() time.Duration { return s.from + rand.N(s.to-s.from+1) }

var (
	// retryLost is what clients are told at the beginning, for connections
	// that break unforeseen: all of a gateway's at once, perhaps.
	retryLost = span{2 * time.Second, 5 * time.Second}
	// retryMoved goes to those who are sent away one by one.
	retryMoved = span{200 * time.Millisecond, time.Second}
	// retryBusy goes to those who find no room.
	retryBusy = span{5 * time.Second, 15 * time.Second}
	// retryDisplaced is long, because the oldest of too many streams that comes
	// back only displaces the next.
	retryDisplaced = span{30 * time.Second, 60 * time.Second}
)

// around returns d give or take a share of it.
func around(d time.Duration, share float64) time.Duration {
	swing := time.Duration(float64(d) * share)
	return span{d - swing, d + swing}.pick()
}
