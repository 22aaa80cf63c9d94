// Command sse serves the hub alone, with numbers in memory instead of a
// database, for `make bench-sse`. The other contestants, and what drives them
// all, are in scripts/bench/sse.
//
//	GET  /sub/{topic}  a stream
//	POST /pub/{topic}  a JSON object, which every client of the topic gets
//	GET  /gc           collect garbage, before memory is read
//
// Interrupted, it drains its clients as the service does before it ends.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3399", "where to listen")
	writer := flag.String("writer", string(sse.Shared), "shared or per-request")
	flag.Parse()
	if err := run(*addr, sse.Writer(*writer)); err != nil {
		fmt.Fprintln(os.Stderr, "bench sse:", err)
		os.Exit(1)
	}
}

func run(addr string, writer sse.Writer) error {
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	cfg := sse.Defaults()
	cfg.Writer, cfg.Lifetime, cfg.CompareEvery = writer, time.Hour, time.Hour
	cfg.MaxStreams, cfg.MaxPerUser = 1<<20, 1<<20
	store := &numbers{last: make(map[notification.Stream]int64)}
	hub := sse.New(cfg, store, zerolog.Nop(), prometheus.NewRegistry())
	context.AfterFunc(interrupted, func() {
		hub.Drain(ctx)
		end()
	})
	lc := net.ListenConfig{Control: transport.Control}
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: routes(hub, store), ReadHeaderTimeout: 5 * time.Second}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return hub.Run(ctx) })
	g.Go(func() error { return server.Serve(ln) })
	context.AfterFunc(ctx, func() { _ = server.Close() }) // the process ends anyway
	return g.Wait()
}

func routes(hub *sse.Hub, store *numbers) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		hub.ServeNotifications(w, r, notification.Reader{UserID: r.PathValue("topic")}, time.Now().Add(time.Hour))
	})
	mux.HandleFunc("POST /pub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil || !json.Valid(data) {
			http.Error(w, "want a JSON object", http.StatusBadRequest)
			return
		}
		store.publish(hub, notification.UserStream(r.PathValue("topic")), data)
	})
	mux.HandleFunc("GET /gc", func(http.ResponseWriter, *http.Request) { debug.FreeOSMemory() })
	return mux
}

// numbers is in the place of the database: it has the last number of each
// stream, and no history.
type numbers struct {
	mu   sync.Mutex
	last map[notification.Stream]int64
}

const epoch = "bench"

// publish numbers and delivers under the lock, as commits come one by one.
func (n *numbers) publish(hub *sse.Hub, stream notification.Stream, data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last[stream]++
	now := time.Now()
	hub.Deliver(notification.Batch{Notifications: []notification.Notification{{
		Stream: stream, Epoch: epoch, Seq: n.last[stream], ID: uuid.Must(uuid.NewV7()), Data: data, CreatedAt: now,
	}}}, now)
}

// View returns the heads of the reader's streams.
func (n *numbers) View(ctx context.Context, r notification.Reader) (notification.View, error) {
	heads, err := n.Heads(ctx, r.Streams())
	return notification.View{Heads: heads}, err
}

// Heads returns the heads of streams.
func (n *numbers) Heads(_ context.Context, streams []notification.Stream) ([]notification.Head, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var heads []notification.Head
	for _, s := range streams {
		heads = append(heads, notification.Head{Stream: s, Position: notification.Position{Epoch: epoch, Seq: n.last[s]}})
	}
	return heads, nil
}

// Since returns nothing: there is no history.
func (*numbers) Since(context.Context, []notification.Head, int) ([]notification.Notification, error) {
	return nil, nil
}
