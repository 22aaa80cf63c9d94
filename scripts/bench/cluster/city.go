package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/topology"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

const (
	// shards are those of the outbox; users is how many the messages are for.
	shards, users = 16, 1000
	// writers commit at the same time at most.
	writers = 8
)

// A city is both databases, and the relay and the consumer as programs.
type city struct {
	folder                             string
	reports, notifications             *pgxpool.Pool
	reportsURL, notificationsURL       string
	dropReports, dropNotifications     func() error
	relayProgram, consumerProgram, key string
	keyring                            *event.Keyring
}

func newCity(ctx context.Context) (_ *city, err error) {
	none := func() error { return nil }
	c := &city{key: event.NewKey("k1"), dropReports: none, dropNotifications: none}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.keyring, err = event.ParseKeyring(c.key); err != nil {
		return nil, err
	}
	if c.reportsURL, c.dropReports, err = testbed.Database(ctx); err != nil {
		c.dropReports = none
		return nil, err
	}
	if c.notificationsURL, c.dropNotifications, err = testbed.Database(ctx); err != nil {
		c.dropNotifications = none
		return nil, err
	}
	if err := errors.Join(migrations.Up(ctx, c.reportsURL, migrations.Report), migrations.Up(ctx, c.notificationsURL, migrations.Notification)); err != nil {
		return nil, err
	}
	if c.reports, err = pgxpool.New(ctx, c.reportsURL); err != nil {
		return nil, err
	}
	if c.notifications, err = pgxpool.New(ctx, c.notificationsURL); err != nil {
		return nil, err
	}
	if c.folder, err = os.MkdirTemp("", "bench-cluster"); err != nil {
		return nil, err
	}
	c.relayProgram, c.consumerProgram = filepath.Join(c.folder, "relay"), filepath.Join(c.folder, "consumer")
	for program, source := range map[string]string{c.relayProgram: "report-service", c.consumerProgram: "notification-service"} {
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench/"+filepath.Base(program))
		build.Dir = filepath.Join("../..", source)
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", filepath.Base(program), err, out)
		}
	}
	return c, nil
}

func (c *city) close() error {
	for _, pool := range []*pgxpool.Pool{c.reports, c.notifications} {
		if pool != nil {
			pool.Close()
		}
	}
	return errors.Join(os.RemoveAll(c.folder), c.dropReports(), c.dropNotifications())
}

// fresh empties both databases, and returns the URL of a new virtual host with
// all queues, which no relay takes for the old one that has lost its messages.
func (c *city) fresh(ctx context.Context, b *broker) (url string, err error) {
	_, reportErr := c.reports.Exec(ctx, `truncate outbox_messages, known_brokers`)
	_, notificationErr := c.notifications.Exec(ctx, `truncate processed_messages`)
	if err := errors.Join(reportErr, notificationErr); err != nil {
		return "", err
	}
	if _, err := c.reports.Exec(ctx, `checkpoint`); err != nil { // what the turn before left to be written is written now
		return "", err
	}
	if url, err = b.vhost(ctx); err != nil {
		return "", err
	}
	conn, err := rabbit.Dial(ctx, rabbit.Config{URL: url, Name: "bench"})
	if err != nil {
		return "", err
	}
	defer conn.Close() // nothing is under way on it
	declared := topology.New(event.Topology{}, consumer.Defaults().RetrySchedule(), topology.Group{Name: "notifications", Queues: topology.ContractQueues()})
	return url, declared.Declare(ctx, conn)
}

// backlog lets the relay publish n rows, and then the consumer take the messages
// of them all. It returns how many a second each of the two did.
func (c *city) backlog(ctx context.Context, b *broker, n int) (relayed, consumed float64, err error) {
	url, err := c.fresh(ctx, b)
	if err != nil {
		return 0, 0, err
	}
	relay, err := c.startRelay(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	_, err = c.reports.CopyFrom(ctx, pgx.Identifier{"outbox_messages"},
		[]string{"id", "routing_key", "payload", "report_id", "report_version", "shard", "headers"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) { return c.row(i), nil }))
	if err != nil {
		return 0, 0, fmt.Errorf("add rows: %w", err)
	}
	began := time.Now()
	fmt.Fprintln(relay.commands, "wake")
	if err := until(ctx, c.reports, `select not exists (select from outbox_messages where status = 'pending')`); err != nil {
		return 0, 0, err
	}
	relayed = float64(n) / time.Since(began).Seconds()
	if err := relay.stop(); err != nil {
		return 0, 0, err
	}
	out, err := c.consumer(ctx, url, n).Output()
	if err != nil {
		return 0, 0, fmt.Errorf("run the consumer: %w", err)
	}
	var took struct {
		Seconds float64 `json:"seconds"` // from the first message to the last effect
	}
	if err := json.Unmarshal(out, &took); err != nil {
		return 0, 0, fmt.Errorf("read what the consumer measured: %w", err)
	}
	return relayed, float64(n) / took.Seconds, nil
}

// latency commits rows at an even rate while relay and consumer run, and returns
// how long it takes from one commit to its effect, in milliseconds.
func (c *city) latency(ctx context.Context, b *broker, rate, seconds int) (p50, p99 float64, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends both programs where one of them fails
	defer cancel()
	url, err := c.fresh(ctx, b)
	if err != nil {
		return 0, 0, err
	}
	relay, err := c.startRelay(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	n := rate * seconds
	consumer := c.consumer(ctx, url, n)
	if err := consumer.Start(); err != nil {
		return 0, 0, err
	}
	if err := c.write(ctx, relay.commands, rate, n); err != nil {
		cancel()
		return 0, 0, errors.Join(err, consumer.Wait(), relay.stop())
	}
	if err := errors.Join(consumer.Wait(), relay.stop()); err != nil {
		return 0, 0, err
	}
	committed, err := times(ctx, c.reports, `select id::text, created_at from outbox_messages`)
	if err != nil {
		return 0, 0, err
	}
	effected, err := times(ctx, c.notifications, `select message_id, processed_at from processed_messages`)
	if err != nil {
		return 0, 0, err
	}
	var took []float64
	for id, at := range committed {
		took = append(took, effected[id].Sub(at).Seconds()*1000)
	}
	if len(effected) != n || len(took) != n {
		return 0, 0, fmt.Errorf("%d rows had %d effects, want %d", len(took), len(effected), n)
	}
	return stats.Percentile(took, 50), stats.Percentile(took, 99), nil
}

// write commits n rows at an even rate, each in a transaction of its own, which
// wakes the relay as report-service does.
func (c *city) write(ctx context.Context, relay io.Writer, rate, n int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	began := time.Now()
	for i := range n {
		<-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		g.Go(func() error {
			_, err := c.reports.Exec(ctx, `
				insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, headers)
				values ($1, $2, $3, $4, $5, $6, $7)`, c.row(i)...)
			if err == nil {
				_, err = fmt.Fprintln(relay, "wake")
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("commit at an even rate: %w", err)
	}
	return nil
}

// row is the i-th row of the outbox, of a report that has no other.
func (c *city) row(i int) []any {
	report := uuid.New()
	body, err := json.Marshal(event.VoteReceived{
		Subject: event.Subject{ReportID: report, ReportVersion: 1, ReportTitle: "Street light out at the corner of Walnut and Third", Timestamp: time.Now().Unix()},
		VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(1)),
	})
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	headers := map[string]string{
		event.TraceHeader:     "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		event.RecipientHeader: c.keyring.Seal(report, fmt.Sprintf("user-%d", i%users)),
	}
	return []any{uuid.Must(uuid.NewV7()), string(event.VoteReceivedKey), json.RawMessage(body), report, int64(1), int16(i % shards), headers}
}

// A relay is the program of report-service's relay.
type relay struct {
	cmd      *exec.Cmd
	commands io.WriteCloser
}

// startRelay returns once the relay owns all shards.
func (c *city) startRelay(ctx context.Context, url string) (*relay, error) {
	r := &relay{cmd: exec.CommandContext(ctx, c.relayProgram, "-database", c.reportsURL, "-broker", url)}
	r.cmd.Stderr = os.Stderr
	var err error
	if r.commands, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	return r, until(ctx, c.reports, `select count(*) = 16 from relay_shards where owner is not null and lease_until > now()`)
}

func (r *relay) stop() error {
	_ = r.commands.Close()
	if err := r.cmd.Wait(); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

// consumer returns the program of notification-service's consumer, which ends
// after n messages, with the workers that it has by default.
func (c *city) consumer(ctx context.Context, url string, n int) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.consumerProgram, "-effect=whole", "-workers", strconv.Itoa(consumer.Defaults().Workers), "-good", strconv.Itoa(n))
	cmd.Env = append(os.Environ(), "RABBITMQ_URL="+url, "DATABASE_URL="+c.notificationsURL, "RECIPIENT_KEY="+c.key)
	cmd.Stderr = os.Stderr
	return cmd
}

// until asks until the answer is yes.
func until(ctx context.Context, pool *pgxpool.Pool, question string) error {
	for {
		var yes bool
		if err := pool.QueryRow(ctx, question).Scan(&yes); err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond): // asking costs the server, too
		}
	}
}

// times returns the moment of each message.
func times(ctx context.Context, pool *pgxpool.Pool, sql string) (map[string]time.Time, error) {
	rows, err := pool.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	moments := make(map[string]time.Time)
	var id string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		moments[id] = at
		return nil
	})
	return moments, err
}
