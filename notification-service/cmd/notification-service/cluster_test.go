package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/processtest"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

func TestMain(m *testing.M) { processtest.Main(m, main) }

// A cluster is a broker and a database with replicas of the service.
type cluster struct {
	t          testing.TB
	rabbit, db string
	env        []string
	keys       *event.Keyring
	secret     string
}

func newCluster(t testing.TB, rabbitURL, databaseURL string, env ...string) *cluster {
	t.Helper()
	key := event.NewKey("k1")
	keys, err := event.ParseKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, rabbit: rabbitURL, db: databaseURL, keys: keys, secret: strings.Repeat("secret", 6)}
	c.env = append([]string{
		"DATABASE_URL=" + databaseURL, "RABBITMQ_URL=" + rabbitURL, "RECIPIENT_KEY=" + key,
		"AUTH_MODE=dev", "AUTH_ISSUER=test", "AUTH_AUDIENCE=test", "AUTH_JWT_SECRET=" + c.secret,
		"LOG_LEVEL=warn", "DRAIN_WINDOW=1s", "OPERATIONS_ADDR=127.0.0.1:0",
	}, env...)
	return c
}

// A replica is one process of the service. Started again, it keeps its port.
type replica struct {
	*processtest.Process
	cluster *cluster
}

func (c *cluster) start() *replica {
	c.t.Helper()
	return &replica{processtest.Start(c.t, processtest.Config{Address: "HTTP_ADDR", Env: c.env}), c}
}

// token signs in at the development issuer.
func (r *replica) token(sub, role string) string {
	t := r.cluster.t
	t.Helper()
	body, err := json.Marshal(map[string]string{"name": "Test", "role": role, "sub": sub})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(r.URL("/dev/token"), "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		t.Fatalf("sign in: status %d, error %v", resp.StatusCode, err)
	}
	return answer.Token
}

// open connects to the user's stream.
func (r *replica) open(token, lastID string) *ssetest.Stream {
	r.cluster.t.Helper()
	s, err := ssetest.Open(context.WithoutCancel(r.cluster.t.Context()), r.URL("/notifications/stream"), lastID, "Authorization", "Bearer "+token)
	if err != nil {
		r.cluster.t.Fatal(err)
	}
	r.cluster.t.Cleanup(s.Close)
	return s
}

// expect returns the next event, which must be of the type; heartbeats aside.
func expect(t testing.TB, s *ssetest.Stream, kind string) sse.Event {
	t.Helper()
	watchdog := time.AfterFunc(eventually.Patience, s.Close)
	defer watchdog.Stop()
	for {
		e, err := s.Next()
		switch {
		case err != nil:
			t.Fatalf("next event: %v", err)
		case e.Type == "hb":
		case e.Type != kind:
			t.Fatalf("got event %q with %s, want %q", e.Type, e.Data, kind)
		default:
			return e
		}
	}
}

// A publisher sends votes as report-service does.
type publisher struct {
	cluster *cluster
	pub     *rabbit.Publisher
}

func (c *cluster) publisher() *publisher {
	c.t.Helper()
	p := &publisher{cluster: c}
	eventually.True(c.t, "a consumer is there", func() bool { return p.connect() == nil })
	return p
}

// connect opens a connection and tries it out.
func (p *publisher) connect() error {
	ctx := context.WithoutCancel(p.cluster.t.Context())
	conn, err := rabbit.Dial(ctx, rabbit.Config{URL: p.cluster.rabbit, Name: "test"})
	if err != nil {
		return err
	}
	if p.pub, err = rabbit.NewPublisher(conn, 256); err == nil {
		err = p.vote(ctx, "stranger")
	}
	if err != nil {
		_ = conn.Close() // it is of no use
		return err
	}
	p.cluster.t.Cleanup(func() { _ = conn.Close() }) // the broker may be gone
	return nil
}

// vote publishes a vote on an anonymous report of the user, and returns once
// the broker has it.
func (p *publisher) vote(ctx context.Context, user string) error { return p.send(ctx, p.newVote(user)) }

func (p *publisher) newVote(user string) amqp.Publishing {
	report := uuid.New()
	body, err := json.Marshal(&event.VoteReceived{
		Subject: event.Subject{ReportID: report, ReportVersion: 1, ReportTitle: "Pothole", Timestamp: time.Now().Unix()},
		VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(1)),
	})
	if err != nil {
		p.cluster.t.Fatal(err)
	}
	return amqp.Publishing{
		MessageId: uuid.NewString(), Type: string(event.VoteReceivedKey), ContentType: "application/json",
		DeliveryMode: amqp.Persistent, Body: body,
		Headers: amqp.Table{event.RecipientHeader: p.cluster.keys.Seal(report, user)},
	}
}

func (p *publisher) send(ctx context.Context, v amqp.Publishing) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a broker that stops may not answer
	defer cancel()
	return p.pub.PublishWait(ctx, event.Topology{}.Exchange(), string(event.VoteReceivedKey), v)
}
