package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// key is what all messages travel under.
const key = event.VoteReceivedKey

// reports is over how many reports the messages spread.
const reports = 2000

// A place is a database, a virtual host and the relay's program, of this run
// alone.
type place struct {
	admin, management string
	database, broker  string
	name, vhost       string
	program           string
	pool              *pgxpool.Pool
	topology          event.Topology
	walBytes          int64 // of the last pass of the relay
}

func newPlace(ctx context.Context) (*place, error) {
	p := &place{
		admin: os.Getenv("TEST_DATABASE_URL"), management: os.Getenv("TEST_RABBITMQ_MANAGEMENT_URL"),
		name: "bench_" + strings.ReplaceAll(uuid.NewString(), "-", ""),
	}
	if p.admin == "" || p.management == "" {
		return nil, errors.New(`no servers: eval "$(scripts/stack test-up)" first, or use make bench-relay`)
	}
	if err := p.exec(ctx, "create database "+p.name); err != nil {
		return nil, err
	}
	u, err := url.Parse(p.admin)
	if err != nil {
		return nil, errors.New("TEST_DATABASE_URL is not a URL")
	}
	u.Path = "/" + p.name
	p.database = u.String()
	if err := migrations.Up(ctx, p.database, migrations.Report); err != nil {
		return nil, err
	}
	if p.pool, err = pgxpool.New(ctx, p.database); err != nil {
		return nil, err
	}
	var fsync string
	if err := p.pool.QueryRow(ctx, `show fsync`).Scan(&fsync); err != nil {
		return nil, fmt.Errorf("read fsync: %w", err)
	}
	if fsync != "on" {
		return nil, fmt.Errorf("the database runs with fsync %q, which measures nothing", fsync)
	}
	p.program = filepath.Join(os.TempDir(), p.name)
	build := exec.CommandContext(ctx, "go", "build", "-o", p.program, "./bench/relay")
	build.Dir = "../../report-service"
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the relay: %w\n%s", err, out)
	}
	return p, nil
}

func (p *place) close() error {
	p.pool.Close()
	return errors.Join(os.Remove(p.program), p.dropVhost(), p.exec(context.Background(), "drop database "+p.name+" with (force)"))
}

func (p *place) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, p.admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) // nothing is open on it
	_, err = conn.Exec(ctx, sql)
	return err
}

// fresh empties the outbox and makes a new virtual host with the queue. What
// the pass before left to be written is written now.
func (p *place) fresh(ctx context.Context) error {
	for _, sql := range []string{`truncate outbox_messages`, `checkpoint`} {
		if _, err := p.pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := p.dropVhost(); err != nil {
		return err
	}
	p.vhost = "bench-" + uuid.NewString()
	if err := p.manage(http.MethodPut, "/api/vhosts/"+p.vhost); err != nil {
		return err
	}
	u, err := url.Parse(os.Getenv("TEST_RABBITMQ_URL"))
	if err != nil {
		return errors.New("TEST_RABBITMQ_URL is not a URL")
	}
	u.Path = "/" + p.vhost
	p.broker = u.String()
	return p.declare(ctx)
}

func (p *place) declare(ctx context.Context) error {
	conn, err := rabbit.Dial(ctx, rabbit.Config{URL: p.broker, Name: "bench"})
	if err != nil {
		return err
	}
	defer conn.Close() // nothing is under way on it
	return firstOf(
		rabbit.DeclareExchange(conn, p.topology.Exchange(), "topic"),
		rabbit.DeclareQueue(conn, p.topology.Queue(key), amqp.Table{"x-queue-type": "quorum"}),
		rabbit.BindQueue(conn, p.topology.Queue(key), string(key), p.topology.Exchange()),
	)
}

func (p *place) dropVhost() error {
	if p.vhost == "" {
		return nil
	}
	return p.manage(http.MethodDelete, "/api/vhosts/"+p.vhost)
}

func (p *place) manage(method, path string) error {
	req, err := http.NewRequest(method, p.management+path, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s", method, path, res.Status)
	}
	return nil
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
