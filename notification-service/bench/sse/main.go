// Command sse serves the hub alone, with numbers in memory instead of a
// database, for `make bench-sse` and `make bench-streams`. What drives it is in
// scripts/bench/sse and scripts/bench/streams.
//
//	GET  /sub/{topic}       a stream; with ?official=1 also that of the officials
//	POST /pub/{topic}       a JSON object, which every client of the topic gets
//	POST /pub-to-officials  one that every official gets
//	GET  /gc                collect garbage, before memory is read
//
// Interrupted, it drains its clients as the service does before it ends. With
// -history, published events are kept in a file and are there after a kill.
package main

import (
	"context"
	"encoding/json"
	"errors"
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
	history := flag.String("history", "", "a file that keeps what was published")
	reconnectRate := flag.Int("reconnect-rate", sse.Defaults().ReconnectRate, "how many clients a second come back at most")
	flag.Parse()
	cfg := sse.Defaults()
	cfg.ReconnectRate, cfg.Lifetime, cfg.CompareEvery = *reconnectRate, time.Hour, time.Hour
	cfg.MaxStreams, cfg.MaxPerUser = 1<<20, 1<<20
	if err := run(*addr, cfg, *history); err != nil {
		fmt.Fprintln(os.Stderr, "bench sse:", err)
		os.Exit(1)
	}
}

func run(addr string, cfg sse.Config, history string) error {
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	store := &numbers{last: make(map[notification.Stream]int64)}
	if history != "" {
		if err := store.open(history); err != nil {
			return fmt.Errorf("open history: %w", err)
		}
		defer store.file.Close()
	}
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
		reader := notification.Reader{UserID: r.PathValue("topic"), Official: r.URL.Query().Has("official")}
		hub.ServeNotifications(w, r, reader, time.Now().Add(time.Hour))
	})
	publish := func(w http.ResponseWriter, r *http.Request, stream notification.Stream) {
		data, err := io.ReadAll(r.Body)
		if err != nil || !json.Valid(data) {
			http.Error(w, "must be a JSON object", http.StatusBadRequest)
			return
		}
		if err := store.publish(hub, stream, data); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	mux.HandleFunc("POST /pub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		publish(w, r, notification.UserStream(r.PathValue("topic")))
	})
	mux.HandleFunc("POST /pub-to-officials", func(w http.ResponseWriter, r *http.Request) {
		publish(w, r, notification.Officials)
	})
	mux.HandleFunc("GET /gc", func(http.ResponseWriter, *http.Request) { debug.FreeOSMemory() })
	return mux
}

// numbers is in the place of the database: it has the last number of each
// stream, and its history if there is a file for it.
type numbers struct {
	mu      sync.Mutex
	last    map[notification.Stream]int64
	file    *os.File
	history []notification.Notification
}

const epoch = "bench"

// open reads the events that were published before, and goes on from there.
func (n *numbers) open(path string) error {
	var err error
	if n.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600); err != nil { //nolint:gosec // the path is the benchmark's own
		return err
	}
	for decoder := json.NewDecoder(n.file); ; {
		var published notification.Notification
		if err := decoder.Decode(&published); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n.history = append(n.history, published)
		n.last[published.Stream] = published.Seq
	}
}

// publish numbers and delivers under the lock, as commits come one by one.
func (n *numbers) publish(hub *sse.Hub, stream notification.Stream, data []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last[stream]++
	now := time.Now()
	published := notification.Notification{
		Stream: stream, Epoch: epoch, Seq: n.last[stream], ID: uuid.Must(uuid.NewV7()), Data: data, CreatedAt: now,
	}
	if n.file != nil {
		if err := json.NewEncoder(n.file).Encode(published); err != nil {
			return err
		}
		n.history = append(n.history, published)
	}
	hub.Deliver(notification.Batch{Notifications: []notification.Notification{published}}, now)
	return nil
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

// Since returns the kept events that follow each head in its stream.
func (n *numbers) Since(_ context.Context, heads []notification.Head, limit int) ([]notification.Notification, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var since []notification.Notification
	for _, head := range heads {
		found := 0
		for _, published := range n.history {
			if published.Stream == head.Stream && published.Seq > head.Seq && found < limit {
				since = append(since, published)
				found++
			}
		}
	}
	return since, nil
}
