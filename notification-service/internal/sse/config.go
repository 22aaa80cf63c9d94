package sse

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/config"
)

// A Config has the limits of a Hub, from the environment.
type Config struct {
	// Heartbeat is the longest silence on a stream, ±10 %.
	Heartbeat time.Duration `env:"STREAM_HEARTBEAT" envDefault:"20s"`
	// Lifetime is that of a connection, ±20 %.
	Lifetime time.Duration `envDefault:"30m"`
	// DrainWindow is how long closing all connections may take.
	DrainWindow time.Duration `env:"DRAIN_WINDOW" envDefault:"20s"`
	// WriteTimeout is how long a client may read nothing.
	WriteTimeout time.Duration `envDefault:"5s"`
	// CompareEvery is the time between two comparisons with the database.
	CompareEvery time.Duration `env:"STREAM_COMPARE_EVERY" envDefault:"30s"`
	// MaxStreams bounds the connections of this replica. Further clients come
	// back later.
	MaxStreams int `env:"STREAM_MAX" envDefault:"20000"`
	// MaxFeed bounds those of the public feed among them. It leaves room for
	// those that are signed in, since the feed needs no token. Half is what pages
	// need, which follow the feed and their user's notifications.
	MaxFeed int `env:"STREAM_MAX_FEED" envDefault:"10000"`
	// MaxPerUser bounds the connections of one user. The oldest is closed for a new one.
	// Eight times as many may be opened in a minute.
	MaxPerUser int `envDefault:"8"`
	// ReconnectRate is how many clients a second are to come back at most when all
	// streams of this replica break at once. The server that ends TLS needs a core
	// for each 2,000 of them.
	ReconnectRate int `envDefault:"10000"`
	// Writer says who writes to the clients.
	Writer Writer `envDefault:"shared"`
}

// A Writer names a transport.
type Writer string

// The writers. Shared hijacks plain HTTP/1.1 connections and leaves the rest to
// PerRequest, which has a goroutine for each client.
const (
	Shared     Writer = "shared"
	PerRequest Writer = "per-request"
)

// Defaults returns the Config of an empty environment.
func Defaults() Config {
	var c Config
	if err := config.Load(&c, func(string) string { return "" }, nil); err != nil {
		panic(err) // the tags above are wrong
	}
	return c
}

// Validate returns everything that is wrong with c.
func (c Config) Validate() []config.Fault {
	var faults config.Faults
	faults.Check(c.Heartbeat >= 100*time.Millisecond && c.Heartbeat <= time.Minute,
		"STREAM_HEARTBEAT", "100ms to 1m, such as 20s")
	faults.Check(c.DrainWindow >= 0 && c.DrainWindow <= 5*time.Minute,
		"DRAIN_WINDOW", "0s to 5m, such as 20s")
	faults.Check(c.CompareEvery >= 100*time.Millisecond && c.CompareEvery <= time.Hour,
		"STREAM_COMPARE_EVERY", "100ms to 1h, such as 30s")
	faults.Check(c.MaxStreams > 0, "STREAM_MAX", "a positive number, such as 20000")
	faults.Check(c.MaxFeed > 0 && (c.MaxFeed < c.MaxStreams || c.MaxStreams <= 0), "STREAM_MAX_FEED", "a positive number below STREAM_MAX, such as 10000")
	return faults
}

const (
	// maxBehind is how many notifications a client may be behind and still be
	// sent them one by one; beyond that, fetching the list again is cheaper for both.
	maxBehind = 1000
	// pageRows is how many notifications are read at once for a client.
	pageRows = 100
	// opensPerStream is how many streams a user may open in a minute for each of
	// MaxPerUser, all of them at once: what a page does that is loaded again and again.
	opensPerStream = 8
	// openTimeout bounds the opening of a stream. A client that cannot
	// be served within it comes back later.
	openTimeout = 10 * time.Second
	// unusedTopicTTL is how long a topic without clients is kept, so that those
	// that come back find their events in its ring.
	unusedTopicTTL = 30 * time.Second
)

// maxRetryLost bounds how long clients wait where all streams break at once.
const maxRetryLost = time.Minute

// retryLostFor spreads the reconnects of so many streams of this replica, which may
// all break at once, so that at most rate arrive per second.
func retryLostFor(streams, rate int) durationRange {
	spread := min(time.Duration(streams)*time.Second/time.Duration(rate), maxRetryLost)
	return durationRange{retryLost.min, max(retryLost.max, spread)}
}

// otherFiles is how many files and connections a replica has open besides its
// streams: to its servers, and of other requests.
const otherFiles = 200

// WarnOfFiles warns if this process may not open as many files as it is to hold
// streams: beyond the limit, no connection of any kind is accepted.
func WarnOfFiles(cfg Config, log zerolog.Logger) {
	var limit syscall.Rlimit // of which Go took all that there is
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= uint64(cfg.MaxStreams)+otherFiles {
		return
	}
	log.Warn().Uint64("limit", limit.Cur).Int("needed", cfg.MaxStreams+otherFiles).
		Msg("the limit of open files is too low for STREAM_MAX: beyond it, no connection will be accepted; raise it (ulimit -n) or lower STREAM_MAX")
}

// A durationRange is where a random duration is taken from, so that what began
// together does not stay together.
type durationRange struct{ min, max time.Duration }

func (r durationRange) random() time.Duration { return r.min + rand.N(r.max-r.min+1) }

// after returns the range that begins d later.
func (r durationRange) after(d time.Duration) durationRange {
	return durationRange{r.min + d, r.max + d}
}

// How long clients wait before they come back.
var (
	// retryLost is for connections that break unforeseen: all of a gateway's at
	// once, perhaps. Each stream begins with it, or with more where there are many
	// streams: see retryLostFor. It is most of the time that a reader waits after
	// a replica has died.
	retryLost = durationRange{300 * time.Millisecond, 1500 * time.Millisecond}
	// retryMoved is for streams that are closed one by one.
	retryMoved = durationRange{200 * time.Millisecond, time.Second}
	// retryBusy is for clients that find no room, or whose user opens too many.
	retryBusy = durationRange{5 * time.Second, 15 * time.Second}
	// retryUnavailable is for clients that come while the database is away, which
	// a restart of it ends within a second or two.
	retryUnavailable = durationRange{time.Second, 3 * time.Second}
	// retryDisplaced is long, because the oldest of too many streams that comes
	// back only displaces the next.
	retryDisplaced = durationRange{30 * time.Second, 60 * time.Second}
)
