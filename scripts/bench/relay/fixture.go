package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

// key is what all messages travel under.
const key = event.VoteReceivedKey

// reports is over how many reports the messages spread.
const reports = 2000

// A fixture is the database, the virtual host and the relay's program of this
// run alone.
type fixture struct {
	*testbed.Bed
	database, broker string
	dropVhost        func() error
	program          string
	pool             *pgxpool.Pool
	topology         event.Topology
	walBytes         int64 // of the last pass of the relay
}

func newFixture(ctx context.Context, b *testbed.Bed) (_ *fixture, err error) {
	f := &fixture{Bed: b, dropVhost: func() error { return nil }}
	if f.database, err = b.Database(ctx, migrations.Report); err != nil {
		return nil, err
	}
	if f.pool, err = pgxpool.New(ctx, f.database); err != nil {
		return nil, err
	}
	b.Defer(func() error { f.pool.Close(); return nil })
	var fsync string
	if err := f.pool.QueryRow(ctx, `show fsync`).Scan(&fsync); err != nil {
		return nil, fmt.Errorf("read fsync: %w", err)
	}
	if fsync != "on" {
		return nil, fmt.Errorf("the database runs with fsync %q, which measures nothing", fsync)
	}
	f.program, err = b.Build(ctx, "report-service", "relay")
	return f, err
}

// fresh empties the outbox and makes a new virtual host with the queue, which no
// relay takes for the old one that has lost its messages. What the pass before
// left to be written is written now.
func (f *fixture) fresh(ctx context.Context) error {
	for _, sql := range []string{`truncate outbox_messages, known_brokers`, `checkpoint`} {
		if _, err := f.pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := f.dropVhost(); err != nil {
		return err
	}
	var err error
	if f.broker, f.dropVhost, err = f.Vhost(); err != nil {
		return err
	}
	return f.declare(ctx)
}

func (f *fixture) declare(ctx context.Context) error {
	conn, err := rabbit.Dial(ctx, rabbit.Config{URL: f.broker, Name: "bench"})
	if err != nil {
		return err
	}
	defer conn.Close() // nothing is under way on it
	return errors.Join(
		rabbit.DeclareExchange(conn, f.topology.Exchange(), "topic"),
		rabbit.DeclareQueue(conn, f.topology.Queue(key), amqp.Table{"x-queue-type": "quorum"}),
		rabbit.BindQueue(conn, f.topology.Queue(key), string(key), f.topology.Exchange()),
	)
}

// body is a message as a vote makes it.
func body(report uuid.UUID, version int) []byte {
	encoded, err := json.Marshal(event.VoteReceived{
		Subject: event.Subject{ReportID: report, ReportVersion: int64(version), ReportTitle: "Street light out at the corner of Walnut and Third", ReporterID: report.String(), Timestamp: time.Now().Unix()},
		VoterID: report.String(), VoteType: event.Upvote, NewScore: new(int64(1)),
	})
	if err != nil {
		panic(err) // a struct of plain fields
	}
	return bytes.TrimSpace(encoded)
}

// headers are as long as those of the service.
func headers() map[string]string {
	return map[string]string{
		event.TraceHeader:     "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		event.RecipientHeader: "v1.k1." + strings.Repeat("x", 86),
	}
}
