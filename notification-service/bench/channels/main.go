// Command channels is the program of `make bench-channels`: it measures how
// fast events become deliveries, how fast those reach receivers that answer at
// once, and how long they take while some receivers do not answer. The last is
// also measured with a FIFO of the same workers, which is how a queue without
// lanes does it.
//
// The receivers are in this process, so they share its processors. The database
// is empty, migrated, and named by DATABASE_URL.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	endpoints   = 100
	hangingOnes = 5
	rate        = 200 // events a second, each for one endpoint
	workers     = 64  // requests at once
	timeout     = 15 * time.Second
	// A FIFO of 64 workers is stuck after about 6 s of ten hanging requests a
	// second: the run must be much longer.
	fairness = 30 * time.Second
	passes   = 3 // with and without hanging receivers, in turn; medians count

	expandEvents = 1000 // each for all endpoints
	expandBatch  = 10   // as the consumer has
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "channels:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	pool, err := pgpool.Open(ctx, os.Getenv("DATABASE_URL"), "bench")
	if err != nil {
		return err
	}
	defer pool.Close()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		return err
	}
	r, err := newReceivers()
	if err != nil {
		return err
	}
	defer r.close()
	b := &bench{pool: pool, store: postgres.New(pool, postgres.Options{}), keys: keys, receivers: r}
	if err := b.register(ctx); err != nil {
		return err
	}

	expanded, err := b.expansion(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("expanded   %8.0f rows/s, %d endpoints, %d events in a transaction\n", expanded, endpoints, expandBatch)
	delivered, claim, err := b.throughput(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("delivered  %8.0f/s to receivers that answer at once; a claim takes %.1f ms\n", delivered, claim)

	var ratios, healthy, firsts []float64
	for range passes {
		alone, err := b.lanes(ctx, "lanes, all answer", 0)
		if err != nil {
			return err
		}
		lanes, err := b.lanes(ctx, "lanes, 5 hang", hangingOnes)
		if err != nil {
			return err
		}
		ratios = append(ratios, lanes.p99/alone.p99)
		healthy, firsts = append(healthy, lanes.p99), append(firsts, alone.p50)
	}
	fifo, err := b.fifo(ctx, "FIFO, 5 hang", hangingOnes)
	if err != nil {
		return err
	}
	fmt.Printf("expand_per_s=%.0f deliver_per_s=%.0f healthy_p99_ms=%.1f healthy_ratio=%.2f fifo_p99_ratio=%.0f first_post_p50_ms=%.1f claim_ms=%.1f\n",
		expanded, delivered, median(healthy), median(ratios), fifo.p99/median(healthy), median(firsts), claim)
	return nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

type bench struct {
	pool      *pgxpool.Pool
	store     *postgres.DB
	keys      *event.Keyring
	receivers *receivers
}

// register makes the endpoints, each for one category of its own.
func (b *bench) register(ctx context.Context) error {
	for i := range endpoints {
		id := uuid.New()
		_, err := b.pool.Exec(ctx, `insert into webhook_endpoints (id, url, secret, category_ids) values ($1, $2, $3, array[$4::int])`,
			id, b.receivers.url(i), webhook.SealSecret(b.keys, id, webhook.NewSecret()), i+1)
		if err != nil {
			return fmt.Errorf("register: %w", err)
		}
	}
	return nil
}

// expansion returns how many rows a second two consumers write.
func (b *bench) expansion(ctx context.Context) (perSecond float64, err error) {
	if _, err := b.pool.Exec(ctx, `update webhook_endpoints set category_ids = '{}'`); err != nil {
		return 0, fmt.Errorf("let all be sent: %w", err)
	}
	began := time.Now()
	var g errgroup.Group
	for range 2 {
		g.Go(func() error {
			for range expandEvents / expandBatch / 2 {
				events := make([]webhook.Event, expandBatch)
				for i := range events {
					events[i] = newEvent(0)
				}
				if _, _, err := b.store.Endpoints.Expand(ctx, webhook.Queue, events); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = g.Wait()
	return expandEvents * endpoints / time.Since(began).Seconds(), err
}

// throughput delivers what expansion wrote, or the first seconds of it.
func (b *bench) throughput(ctx context.Context) (perSecond, claimMS float64, err error) {
	const wanted = 40_000
	arrived := b.receivers.expect(wanted)
	began := time.Now()
	_, registry, stop := b.start(ctx)
	<-arrived
	perSecond = wanted / time.Since(began).Seconds()
	stop()
	families, err := registry.Gather()
	if err != nil {
		return 0, 0, err
	}
	for _, f := range families {
		if f.GetName() == "delivery_claim_duration_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			claimMS = 1000 * h.GetSampleSum() / float64(h.GetSampleCount())
		}
	}
	for i := range endpoints { // from now on each event is for one of them
		if _, err := b.pool.Exec(ctx, `update webhook_endpoints set category_ids = array[$2::int] where url = $1`, b.receivers.url(i), i+1); err != nil {
			return 0, 0, err
		}
	}
	_, err = b.pool.Exec(ctx, `truncate deliveries, delivery_attempts, lanes`)
	return perSecond, claimMS, err
}

// start starts a worker with the settings that are shipped, but for its size.
func (b *bench) start(ctx context.Context) (d *ledger.Dispatcher, registry *prometheus.Registry, stop func()) {
	registry = prometheus.NewRegistry()
	sender := webhook.NewSender(b.store.Endpoints, b.keys, client(), registry, zerolog.Nop())
	d = ledger.New(ledger.Config{
		Concurrency: workers, Timeout: timeout, Schedule: ledger.Schedule{5 * time.Second, 5 * time.Minute}, DisableAfter: 120 * time.Hour,
	}, sender, b.store.Ledger, registry, zerolog.Nop())
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Run(ctx) // returns nil
	}()
	return d, registry, func() { cancel(); <-done }
}

func client() *http.Client {
	return webhook.NewClient(webhook.Rules{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, nil, nil)
}

// latencies are from the commit of an event to its arrival, in milliseconds, at the
// receivers that answer. Events that had not arrived at the end count until then.
type latencies struct{ p50, p99, missing float64 }

// lanes measures the dispatcher while some receivers hang.
func (b *bench) lanes(ctx context.Context, what string, hanging int) (latencies, error) {
	b.receivers.hang(hanging)
	dispatcher, _, stop := b.start(ctx)
	err := b.tell(ctx, func(e webhook.Event) error {
		_, lanes, err := b.store.Endpoints.Expand(ctx, webhook.Queue, []webhook.Event{e})
		b.receivers.committed(e)
		dispatcher.Wake(lanes)
		return err
	})
	l := b.receivers.latencies()
	b.receivers.release()
	stop()
	l.print(what)
	if _, truncateErr := b.pool.Exec(ctx, `truncate deliveries, delivery_attempts, lanes`); err == nil {
		err = truncateErr
	}
	return l, err
}

// fifo measures as many workers that take from one queue, oldest first.
func (b *bench) fifo(ctx context.Context, what string, hanging int) (latencies, error) {
	b.receivers.hang(hanging)
	queue := make(chan webhook.Event, 2*rate*int(fairness/time.Second))
	sending, cut := context.WithCancel(ctx)
	var all sync.WaitGroup
	c := client()
	for range workers {
		all.Go(func() {
			for e := range queue {
				post(sending, c, b.receivers.url(int(e.CategoryID)-1), e)
			}
		})
	}
	err := b.tell(ctx, func(e webhook.Event) error {
		_, _, err := b.store.Endpoints.Expand(ctx, webhook.Queue, []webhook.Event{e})
		b.receivers.committed(e)
		queue <- e
		return err
	})
	l := b.receivers.latencies()
	cut()
	b.receivers.release()
	close(queue)
	all.Wait()
	l.print(what)
	return l, err
}

func post(ctx context.Context, c *http.Client, url string, e webhook.Event) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		panic(err) // the address is our own
	}
	req.Header.Set("Webhook-Id", e.MessageID)
	if resp, err := c.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close() // it is empty
	}
}

// tell passes on events at the rate, for the time of a run.
func (b *bench) tell(ctx context.Context, commit func(webhook.Event) error) error {
	b.receivers.reset()
	var g errgroup.Group
	g.SetLimit(16)
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	for n := range int(fairness/time.Second) * rate {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		e := newEvent(int32(n%endpoints) + 1)
		g.Go(func() error { return commit(e) })
	}
	err := g.Wait()
	time.Sleep(time.Second) // for requests on their way
	return err
}

func newEvent(category int32) webhook.Event {
	e, err := webhook.EventOf(uuid.NewString(), &event.ReportCreated{
		Subject:    event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole in the middle of the road", Timestamp: time.Now().Unix()},
		CategoryID: category, CategoryName: "Roads", PrivacyLevel: event.Anonymous,
	})
	if err != nil {
		panic(err)
	}
	return e
}

func (l latencies) print(what string) {
	fmt.Printf("%-18s p50 %8.1f ms  p99 %9.1f ms  not arrived %4.1f %%\n", what, l.p50, l.p99, l.missing)
}

// receivers are one server with an address for each endpoint, and so connections
// for each, as it is in reality.
type receivers struct {
	server    *http.Server
	listeners []net.Listener

	mu        sync.Mutex
	hanging   int
	released  chan struct{}
	left      int
	expected  chan struct{}
	committal map[string]time.Time // by message, of those for healthy endpoints
	arrival   map[string]time.Time
}

func newReceivers() (*receivers, error) {
	r := &receivers{released: make(chan struct{})}
	r.server = &http.Server{Handler: http.HandlerFunc(r.receive), ReadHeaderTimeout: time.Minute}
	for range endpoints {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		r.listeners = append(r.listeners, listener)
		go func() {
			if err := r.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				panic(err)
			}
		}()
	}
	return r, nil
}

func (r *receivers) close() { _ = r.server.Close() }

func (r *receivers) url(i int) string { return fmt.Sprintf("http://%s/%d", r.listeners[i].Addr(), i) }

func (r *receivers) receive(_ http.ResponseWriter, req *http.Request) {
	now := time.Now()
	_, _ = io.Copy(io.Discard, req.Body)
	var i int
	_, _ = fmt.Sscanf(req.URL.Path, "/%d", &i)
	r.mu.Lock()
	hang, released := i < r.hanging, r.released
	id := req.Header.Get("Webhook-Id")
	if r.arrival != nil && r.arrival[id].IsZero() {
		r.arrival[id] = now
	}
	if r.left > 0 {
		if r.left--; r.left == 0 {
			close(r.expected)
		}
	}
	r.mu.Unlock()
	if hang {
		select {
		case <-released:
		case <-req.Context().Done():
		}
	}
}

// expect returns a channel that is closed after n requests.
func (r *receivers) expect(n int) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.expected = n, make(chan struct{})
	return r.expected
}

// hang lets the first n endpoints not answer, until release.
func (r *receivers) hang(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hanging, r.released = n, make(chan struct{})
}

func (r *receivers) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.released)
}

func (r *receivers) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.committal, r.arrival = make(map[string]time.Time), make(map[string]time.Time)
}

func (r *receivers) committed(e webhook.Event) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if int(e.CategoryID) > r.hanging {
		r.committal[e.MessageID] = now
	}
}

func (r *receivers) latencies() latencies {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, missing := time.Now(), 0
	all := make([]float64, 0, len(r.committal))
	for id, committed := range r.committal {
		arrived, ok := r.arrival[id]
		if !ok {
			arrived = now
			missing++
		}
		all = append(all, float64(arrived.Sub(committed).Microseconds())/1000)
	}
	slices.Sort(all)
	at := func(q float64) float64 { return max(0, all[int(q*float64(len(all)-1))]) }
	return latencies{at(.5), at(.99), 100 * float64(missing) / float64(len(all))}
}
