package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/event"
)

// bodySize is what a message weighs.
const bodySize = 512

// streams is over how many users the messages spread.
const streams = 1000

// A load is what a queue is filled with.
type load struct {
	messages int
	failing  int // of them, those that fail in the first second
}

func (l load) good() int { return l.messages - l.failing }

// shuffled returns which of the messages fail. Failures know no period: one in
// every ten messages would meet each batch of ten at the same place. It is the
// same for all passes.
func (l load) shuffled() []bool {
	failing := make([]bool, l.messages)
	for i := range l.failing {
		failing[i] = true
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(failing), func(i, j int) { failing[i], failing[j] = failing[j], failing[i] })
	return failing
}

// fails tells whether a message is one of the failing.
func fails(id string) bool { return strings.HasSuffix(id, "-fails") }

// A place is a database, and a broker on which each pass has its own virtual
// host.
type place struct {
	amqp, management, admin string
	database, name          string
	key                     string // for sealed recipients
	folder                  string
	topology                event.Topology
}

func newPlace(ctx context.Context) (*place, error) {
	p := &place{
		amqp: os.Getenv("TEST_RABBITMQ_URL"), management: os.Getenv("TEST_RABBITMQ_MANAGEMENT_URL"),
		admin: os.Getenv("TEST_DATABASE_URL"), key: event.NewKey("k1"),
		name: "bench_" + strings.ReplaceAll(uuid.NewString(), "-", ""),
	}
	if p.amqp == "" || p.management == "" || p.admin == "" {
		return nil, errors.New(`no servers: eval "$(scripts/stack test-up)" first, or use make bench-consumer`)
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
	if err := migrations.Up(ctx, p.database, migrations.Notification); err != nil {
		return nil, err
	}
	p.folder, err = os.MkdirTemp("", "bench-consumer")
	return p, err
}

func (p *place) close() error {
	return errors.Join(os.RemoveAll(p.folder), p.exec(context.Background(), "drop database "+p.name+" with (force)"))
}

func (p *place) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, p.admin)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// fill makes a virtual host whose vote queue holds l, and returns its URL and
// what deletes it.
func (p *place) fill(ctx context.Context, l load) (brokerURL string, drop func() error, err error) {
	vhost := "bench-" + uuid.NewString()
	if err := p.manage(ctx, http.MethodPut, vhost); err != nil {
		return "", nil, err
	}
	drop = func() error { return p.manage(context.Background(), http.MethodDelete, vhost) }
	u, err := url.Parse(p.amqp)
	if err != nil {
		return "", nil, errors.New("TEST_RABBITMQ_URL is not a URL")
	}
	u.Path = "/" + vhost
	return u.String(), drop, p.publish(u.String(), l)
}

func (p *place) manage(ctx context.Context, method, vhost string) error {
	req, err := http.NewRequestWithContext(ctx, method, p.management+"/api/vhosts/"+vhost, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("management API: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("management API: %s", res.Status)
	}
	return nil
}

// publish declares the queue as notification-service does and fills it.
func (p *place) publish(brokerURL string, l load) error {
	conn, err := amqp.Dial(brokerURL)
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	queue := p.queue()
	_, err = ch.QueueDeclare(queue, true, false, false, false, amqp.Table{
		"x-queue-type": "quorum", "x-dead-letter-exchange": p.topology.DeadLetterExchange(),
		"x-dead-letter-routing-key": p.topology.DeadLetterKey(queue),
	})
	if err != nil {
		return fmt.Errorf("declare queue: %w", err)
	}
	if err := ch.Confirm(false); err != nil {
		return fmt.Errorf("enter confirm mode: %w", err)
	}
	keyring, err := event.ParseKeyring(p.key)
	if err != nil {
		return err
	}
	var last []*amqp.DeferredConfirmation
	for i, failing := range l.shuffled() {
		confirm, err := ch.PublishWithDeferredConfirm("", queue, false, false, message(keyring, i, failing))
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		if last = append(last, confirm); len(last) == 500 {
			wait(last)
			last = last[:0]
		}
	}
	wait(last)
	return nil
}

func wait(confirms []*amqp.DeferredConfirmation) {
	for _, c := range confirms {
		c.Wait()
	}
}

func (p *place) queue() string { return p.topology.Queue(event.VoteReceivedKey) }

// message returns the i-th message.
func message(keyring *event.Keyring, i int, failing bool) amqp.Publishing {
	report := uuid.New()
	vote := event.VoteReceived{
		Subject: event.Subject{ReportID: report, ReportVersion: 1, ReportTitle: "x", Timestamp: time.Now().Unix()},
		VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(1)),
	}
	body, err := json.Marshal(vote)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	body = bytes.Replace(body, []byte(`"x"`), []byte(`"`+strings.Repeat("x", bodySize-len(body)+1)+`"`), 1)
	id := uuid.NewString()
	if failing {
		id += "-fails"
	}
	return amqp.Publishing{
		MessageId: id, Type: string(event.VoteReceivedKey), DeliveryMode: amqp.Persistent, Body: body, Timestamp: time.Now(),
		Headers: amqp.Table{event.RecipientHeader: keyring.Seal(report, fmt.Sprintf("user-%d", i%streams))},
	}
}
