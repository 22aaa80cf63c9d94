// Command mails is the program of `make bench-mail`: it measures how fast the
// digests of a country are claimed that are due at the same moment, how fast
// mails are written, signed and handed over, and how long they take to others
// while one mail host defers everything, beside a run in which none does.
//
// The mail server is in this process, so it shares its processors. The database
// is empty, migrated, and named by DATABASE_URL.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"flag"
	"fmt"
	"io"
	"net"
	netmail "net/mail"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	hosts    = 20  // mail hosts, with a lane each
	readers  = 400 // evenly at them
	mails    = 10_000
	rate     = 100 // mails a second while one host defers: half of what the others take
	fairness = 60 * time.Second
	batch    = 2000 // digests in a transaction, as the job claims them
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "mails:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	digests := flag.Int("digests", 2_500_000, "how many digests are due at once")
	flag.Parse()
	pool, err := pgpool.Open(ctx, os.Getenv("DATABASE_URL"), "bench")
	if err != nil {
		return err
	}
	defer pool.Close()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	b := &bench{pool: pool, store: postgres.New(pool, postgres.Options{Mail: true, MailDue: 2 * time.Minute}), keys: email.NewKeys(keys), server: &server{keys: email.NewKeys(keys)}}
	port, err := b.server.listen(ctx)
	if err != nil {
		return err
	}
	b.config = email.Config{
		MailURL: "set", MailBounceDomain: "bounces.city.example.org", MailRate: 10_000, MailConnections: 4, MailTimeout: 30 * time.Second,
		MailRetryDelays: []time.Duration{time.Minute, 5 * time.Minute}, MailDKIMSelector: "bench", PublicURL: "https://city.example.org",
		Server: email.Server{Host: "127.0.0.1", Port: port, TLS: email.NoTLS},
		From:   &netmail.Address{Name: "CityConnect", Address: "no-reply@city.example.org"}, Signer: key,
	}

	claimed, doubled, err := b.claims(ctx, *digests)
	if err != nil {
		return err
	}
	fmt.Printf("claimed    %8.0f digests/s of %d that are due at once, %d doubled\n", claimed, *digests, doubled)
	if err := b.register(ctx); err != nil {
		return err
	}
	sent, err := b.throughput(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("sent       %8.0f mails/s, signed with RSA 2048, over 4 connections\n", sent)
	alone, err := b.latency(ctx, "all accept", "")
	if err != nil {
		return err
	}
	others, err := b.latency(ctx, "one host answers 451", name(0))
	if err != nil {
		return err
	}
	fmt.Printf("mails_per_s=%.0f digests_claimed_per_s=%.0f digests_doubled=%d deferred_others_p99_ratio=%.2f\n", sent, claimed, doubled, others/alone)
	return nil
}

type bench struct {
	pool   *pgxpool.Pool
	store  *postgres.DB
	keys   *email.Keys
	config email.Config
	server *server
}

func name(host int) string { return fmt.Sprintf("host%d.example.org", host) }

func reader(i int) notification.Reader {
	return notification.Reader{UserID: fmt.Sprintf("reader%d", i)}
}

// claims returns how many digests a second the two jobs claim. None is sent.
func (b *bench) claims(ctx context.Context, n int) (perSecond float64, doubled int64, err error) {
	// The ids of contacts are in the order of time (UUID version 7), as those that
	// the API gives.
	for _, sql := range []string{
		`insert into streams (name, last_seq) select 'user:' || i, 5 from generate_series(1, $1::int) i`,
		`insert into contacts (id, stream_id, address, address_mac, lane, language, zone, state)
		   select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint + id / 50), 12, '0') || '7' || substr(md5(id::text), 1, 3)
		     || '8' || substr(md5(id::text), 4, 15))::uuid, id, '', '', 'host-' || id % 1000, 'id', 'Asia/Jakarta', 'active' from streams limit $1`,
		`insert into digests (stream_id, frequency, at, next_at, sent_seq) select id, 'daily', 420, now(), 3 from streams limit $1`,
	} {
		if err := b.long(ctx, sql, n); err != nil {
			return 0, 0, fmt.Errorf("write digests: %w", err)
		}
	}
	if err := b.long(ctx, `analyze streams, contacts, digests`); err != nil {
		return 0, 0, err
	}
	var all [2]int // by half, each of which has a job of its own
	began := time.Now()
	var g errgroup.Group
	for half := range all {
		g.Go(func() error {
			for more := true; more; {
				err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
					claimed, err := b.store.Digests.Claim(ctx, tx, email.Half(half), batch, 30*time.Minute)
					all[half] += claimed
					more = claimed == batch
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, 0, err
	}
	perSecond = float64(all[0]+all[1]) / time.Since(began).Seconds()
	err = b.pool.QueryRow(ctx, `select count(*) - $1 from deliveries`, n).Scan(&doubled)
	if err == nil {
		err = b.long(ctx, `truncate deliveries, delivery_attempts, lanes, streams cascade`)
	}
	return perSecond, doubled, err
}

// long runs a statement that takes longer than the service lets one.
func (b *bench) long(ctx context.Context, sql string, args ...any) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local statement_timeout = 0`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
}

// register gives the readers addresses, and subscribes them to everything.
func (b *bench) register(ctx context.Context) error {
	for i := range readers {
		address := fmt.Sprintf("reader%d@%s", i, name(i%hosts))
		c := email.Contact{ID: uuid.New(), Lane: b.keys.Lane(address), Language: wording.Indonesian, Zone: "Asia/Jakarta"}
		c.Address = b.keys.SealAddress(c.ID, address)
		if _, err := b.store.Contacts.Set(ctx, reader(i), c, b.keys.AddressHashes(address)); err != nil {
			return err
		}
	}
	_, err := b.pool.Exec(ctx, `update contacts set state = 'active', kinds = '{report.status.updated}'`)
	return err
}

// tell notifies a reader of a new status, and returns the number of the mail, which
// is due at once.
func (b *bench) tell(ctx context.Context, i int) (id int64, err error) {
	user := reader(i).UserID
	m := &event.StatusUpdate{
		Subject: event.Subject{ReportID: uuid.New(), ReportVersion: 2, ReportTitle: "Pothole in the middle of the road", ReporterID: user,
			Timestamp: time.Now().Unix()},
		NewStatus: event.InProgress, Note: "A crew comes tomorrow.",
	}
	effect := notification.Of(m, user)
	if _, err := b.store.Effects.Apply(ctx, "bench", []postgres.Message{{ID: uuid.NewString(), Value: effect}}); err != nil {
		return 0, err
	}
	err = b.pool.QueryRow(ctx, `
		update deliveries set due_at = now() where channel = 'email' and message_id = $1
		and target = (select c.id::text from contacts c join streams s on s.id = c.stream_id where s.name = $2)
		returning id`, effect.Drafts[0].ID.String(), string(notification.UserStream(user))).Scan(&id)
	return id, err
}

// start starts a worker.
func (b *bench) start(ctx context.Context) (stop func()) {
	relay := email.NewRelay(&b.config, nil)
	sender := email.NewSender(&b.config, b.store.Mails, b.keys, relay, prometheus.NewRegistry(), zerolog.Nop())
	d := ledger.New(b.config.Ledger(), sender, b.store.Ledger, prometheus.NewRegistry(), zerolog.Nop())
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Run(ctx) // returns nil
		relay.Close()
	}()
	return func() { cancel(); <-done }
}

// throughput returns how many mails a second one worker hands over.
func (b *bench) throughput(ctx context.Context) (perSecond float64, err error) {
	var g errgroup.Group
	g.SetLimit(8)
	for i := range mails {
		g.Go(func() error { _, err := b.tell(ctx, i%readers); return err })
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	arrived := b.server.expect(mails)
	began := time.Now()
	stop := b.start(ctx)
	<-arrived
	perSecond = mails / time.Since(began).Seconds()
	stop()
	return perSecond, b.long(ctx, `truncate deliveries, delivery_attempts, lanes`)
}

// latency returns how long mails take from their time to their arrival, at the
// hosts that accept, as the 99th percentile in milliseconds. Mails that had not
// arrived at the end count until then.
func (b *bench) latency(ctx context.Context, what, deferring string) (p99 float64, err error) {
	b.server.reset(deferring)
	stop := b.start(ctx)
	due := make(map[int64]time.Time)
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(16)
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	for n := range rate * int(fairness/time.Second) {
		<-tick.C
		g.Go(func() error {
			id, err := b.tell(ctx, n%readers)
			if err == nil && name(n%readers%hosts) != name(0) {
				mu.Lock()
				defer mu.Unlock()
				due[id] = time.Now()
			}
			return err
		})
	}
	err = g.Wait()
	time.Sleep(2 * time.Second) // for mails on their way
	stop()
	arrivals, now, missing := b.server.arrivals(), time.Now(), 0
	all := make([]float64, 0, len(due))
	for id, at := range due {
		arrived, ok := arrivals[id]
		if !ok {
			arrived = now
			missing++
		}
		all = append(all, max(0, float64(arrived.Sub(at).Microseconds())/1000))
	}
	slices.Sort(all)
	p50, p99 := all[len(all)/2], all[len(all)*99/100]
	fmt.Printf("%-21s p50 %7.1f ms  p99 %8.1f ms  not arrived %d of %d\n", what, p50, p99, missing, len(all))
	if truncateErr := b.long(ctx, `truncate deliveries, delivery_attempts, lanes`); err == nil {
		err = truncateErr
	}
	return p99, err
}

// A server accepts mails, but for those of one host.
type server struct {
	keys *email.Keys

	mu        sync.Mutex
	deferring string
	left      int
	expected  chan struct{}
	arrived   map[int64]time.Time // by delivery
}

func (s *server) listen(ctx context.Context) (port int, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	mailServer := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }))
	mailServer.Domain = "mail.example.org"
	go func() { _ = mailServer.Serve(listener) }() // until the process ends
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (s *server) expect(n int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.expected = n, make(chan struct{})
	return s.expected
}

func (s *server) reset(deferring string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deferring, s.arrived = deferring, make(map[int64]time.Time)
}

func (s *server) arrivals() map[int64]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived
}

type session struct{ server *server }

func (*session) Reset()                               {}
func (*session) Logout() error                        { return nil }
func (*session) Mail(string, *smtp.MailOptions) error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.deferring != "" && strings.HasSuffix(to, "@"+s.server.deferring) {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 4, 1}, Message: "later"}
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m, err := netmail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return err
	}
	token, _, _ := strings.Cut(strings.TrimPrefix(m.Header.Get("Message-ID"), "<"), "@")
	id, _ := s.server.keys.Delivery(token)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.arrived != nil {
		s.server.arrived[id] = time.Now()
	}
	if s.server.left > 0 {
		if s.server.left--; s.server.left == 0 {
			close(s.server.expected)
		}
	}
	return nil
}
