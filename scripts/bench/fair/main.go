// Command fair measures what everybody else waits for while one account floods the API as
// hard as the limits let it: with votes, searches, exports, maps of the whole city, photos,
// comments, or live streams that it opens and closes; while twenty guests at one address ask
// for maps; and while twenty addresses download open data. It measures a whole stack through its
// gateway, with all limits on; scripts/bench-stack.sh starts one for it. Each client has an
// address of its own, which the gateway takes from X-Forwarded-For.
//
// The last line has the figures as name=value. For each kind of flood, p50_ratio and
// p99_ratio compare the latencies of others in turns with the flood to those of the quiet
// turns beside them, from when a request is due to the end of its answer. The ratios of
// screen compare the time from an official's request until its notification is on the
// reporter's screen. Of a turn's 40 notifications the slowest is the p99.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

var (
	gateway  = flag.String("gateway", "", "`address` of the stack")
	database = flag.String("database", "", "`file` with the URL of the reports' database, as its owner")
	reports  = flag.Int("reports", 30_000, "reports of the city")
	turns    = flag.Int("turns", 5, "turns with and without each flood")
	turn     = flag.Duration("turn", 5*time.Second, "how long each of them is")
	only     = flag.String("only", "", "measure only this `kind` of flood: votes, searches, exports, maps, photos, comments, streams, guests or downloads")
)

const (
	// flooding is the address that floods (RFC 5737).
	flooding = "192.0.2.1"
	// rest is how long the machine settles between two turns.
	rest = 500 * time.Millisecond
	// warmUp is how long others ask before anything is measured.
	warmUp = 2 * time.Second
)

// A bench is the city that is measured, and what was measured.
type bench struct {
	transport *http.Transport // of all but the flood
	others    *others
	photo     []byte // what is uploaded
	figures   testbed.Figures
}

func main() { testbed.Main(run) }

func run(ctx context.Context, bed *testbed.Bed) error {
	*gateway = strings.TrimSuffix(*gateway, "/") // as scripts/stack prints it
	kinds, err := wanted()
	if err != nil {
		return err
	}
	url, err := os.ReadFile(*database)
	if err != nil {
		return fmt.Errorf("read the database's URL: %w", err)
	}
	b := &bench{transport: newTransport()}
	if b.photo, err = newPhoto(); err != nil {
		return err
	}
	if b.others, err = b.enter(ctx, strings.TrimSpace(string(url))); err != nil {
		return err
	}
	bed.Defer(b.others.screens.Close)
	if _, err := b.others.ask(ctx, warmUp); err != nil {
		return err
	}
	for _, k := range kinds {
		if err := b.measure(ctx, &k); err != nil {
			return fmt.Errorf("flood of %s: %w", k.name, err)
		}
	}
	b.figures.Print()
	return nil
}

// wanted returns the kinds that the command line asks for.
func wanted() ([]kind, error) {
	if *only == "" {
		return kinds, nil
	}
	for _, k := range kinds {
		if k.name == *only {
			return []kind{k}, nil
		}
	}
	return nil, errors.New("-only: must be one of votes, searches, exports, maps, photos, comments, streams, guests and downloads")
}

// measure compares turns with a flood to turns without one. Each turn floods with a new
// account, of whose limits nothing is used up yet.
func (b *bench) measure(ctx context.Context, k *kind) error {
	var answers, screens testbed.Waits
	var failed [2]int
	flood := testbed.Flood{Rate: k.rate, Parallel: k.parallel}
	for pass, side := range testbed.Turns(*turns, 2) {
		took, err := b.turn(ctx, k, side == 1, pass, &flood)
		if err != nil {
			return err
		}
		answers.Add(side, took.answers)
		screens.Add(side, took.screens)
		failed[side] += took.failed
	}
	flood.AddTo(&b.figures, k.name, *turns, *turn)
	b.figures.Add(k.name+"_others_quiet_failed", 0, float64(failed[0]))
	b.figures.Add(k.name+"_others_failed", 0, float64(failed[1]))
	answers.AddTo(&b.figures, k.name)
	screens.AddTo(&b.figures, k.name+"_screen")
	return nil
}

// turn measures what others wait for in one turn, and returns once the stack has done
// what the flood left to it.
func (b *bench) turn(ctx context.Context, k *kind, flooded bool, pass int, flood *testbed.Flood) (waits, error) {
	if !flooded {
		time.Sleep(rest)
		return b.others.ask(ctx, *turn)
	}
	transport := newTransport()
	defer transport.CloseIdleConnections()
	who, err := signIn(ctx, transport, fmt.Sprintf("Flood of %s %d", k.name, pass), k.role, flooding)
	if err != nil {
		return waits{}, err
	}
	attack, settle, err := k.prepare(ctx, b, account{who, from{flooding, transport}})
	if err != nil {
		return waits{}, err
	}
	time.Sleep(rest)
	during, end := context.WithCancel(ctx)
	var underWay sync.WaitGroup
	underWay.Go(func() { flood.Run(during, attack) })
	took, err := b.others.ask(ctx, *turn)
	end()
	underWay.Wait()
	return took, errors.Join(err, settle(ctx))
}

// connections are how many a transport keeps: more than requests are under way.
const connections = 512

func newTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone() // documented to be one
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = connections, connections
	return transport
}

// From makes requests as a client at an address.
type from struct {
	address   string
	transport *http.Transport
}

// RoundTrip makes a request.
func (f from) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", f.address)
	return f.transport.RoundTrip(r)
}

// An account floods.
type account struct {
	*client.Client
	from from // for requests that the client does not make
}

// signIn returns a new account at an address.
func signIn(ctx context.Context, transport *http.Transport, name, role, address string) (*client.Client, error) {
	c := client.New(*gateway)
	c.Use(from{address, transport})
	who, err := c.SignIn(ctx, name, role, "")
	if err != nil {
		return nil, fmt.Errorf("sign in %s (the stack needs AUTH_MODE=dev): %w", name, err)
	}
	return who, nil
}
