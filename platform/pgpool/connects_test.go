package pgpool_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A server that answers nobody finds few connections when it goes on, and none of
// the many that were given up: it would start a process for each of them.
func TestServerIsNotStormed(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	address := server.URL("postgres")
	pool := open(t, address+"&connect_timeout=1")
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	pool.Reset() // as if its connections had been lost

	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			for ctx.Err() == nil {
				err := pool.Ping(ctx)
				if class := pgpool.Classify(err); class != pgpool.Away && ctx.Err() == nil {
					t.Errorf("ask a server that does not answer: class %q, want %q (error: %v)", class, pgpool.Away, err)
				}
			}
		})
	}
	asking.Wait()
	// The first of all twenty, and from then on one a second, for which each waits;
	// the connection of before and the last attempt may still be among them.
	waiting, most := connectionsTo(t, address), 20+int(time.Since(began)/time.Second)+2
	t.Logf("%d connections wait", waiting)
	if waiting > most {
		t.Errorf("%d connections wait for the server, want %d at most", waiting, most)
	}
	server.Resume()
	eventually.True(t, "the server is reached", func() bool { return pool.Ping(t.Context()) == nil })
}

// A caller whose time is over gets no connection, and learns nothing about the server.
func TestEndedContextIsNotAway(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	pool := open(t, server.URL("postgres")+"&connect_timeout=60")
	ended, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := pool.Ping(ended); pgpool.Classify(err) != pgpool.Busy {
		t.Errorf("class %q, want %q (error: %v)", pgpool.Classify(err), pgpool.Busy, err)
	}
	server.Pause()
	defer server.Resume()
	pool.Reset()
	ending, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // while it connects
	defer cancel()
	if err := pool.Ping(ending); pgpool.Classify(err) != pgpool.Busy {
		t.Errorf("class %q, want %q (error: %v)", pgpool.Classify(err), pgpool.Busy, err)
	}
}

// connectionsTo returns how many connections the server at address has, or would
// have if it took them.
func connectionsTo(t *testing.T, address string) (n int) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	const listening = "0A"
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip("the system does not list its connections in /proc")
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[3] != listening {
			n++
		}
	}
	return n
}
