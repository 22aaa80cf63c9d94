package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/ssetest"
)

// patience ends a test that would not succeed any more. It measures nothing.
const patience = 2 * time.Minute

// binary is the service, built once for all tests, with the race detector if
// they have it: a race ends the process with its own exit code.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "notification-service")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "notification-service")
	out, err := exec.Command("go", "build", fmt.Sprintf("-race=%t", raced()), "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// raced reports whether the tests were built with the race detector.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path)) // a leftover in the temporary folder does no harm
	}
	os.Exit(code)
}

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
		"PATH=" + os.Getenv("PATH"),
		"DATABASE_URL=" + databaseURL, "RABBITMQ_URL=" + rabbitURL, "RECIPIENT_KEY=" + key,
		"AUTH_MODE=dev", "AUTH_ISSUER=test", "AUTH_AUDIENCE=test", "AUTH_JWT_SECRET=" + c.secret,
		"LOG_LEVEL=warn", "DRAIN_WINDOW=1s",
	}, env...)
	return c
}

// A replica is one process of the service. Started again, it keeps its port.
type replica struct {
	cluster *cluster
	port    int
	cmd     *exec.Cmd
	logs    *syncBuffer
}

func (c *cluster) start() *replica {
	c.t.Helper()
	r := &replica{cluster: c, port: freePort(c.t), logs: &syncBuffer{}}
	r.start()
	c.t.Cleanup(func() {
		r.kill()
		if c.t.Failed() {
			c.t.Logf("replica on port %d:\n%s", r.port, r.logs)
		}
	})
	return r
}

// start runs the process and waits until it is ready.
func (r *replica) start() {
	t := r.cluster.t
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.Command(path)
	r.cmd.Env = append(r.cluster.env, fmt.Sprintf("HTTP_ADDR=127.0.0.1:%d", r.port), "OPERATIONS_ADDR=127.0.0.1:0")
	r.cmd.Stdout, r.cmd.Stderr = r.logs, r.logs
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica is ready", func() bool {
		resp, err := http.Get(r.url("/readyz"))
		if err != nil {
			return false
		}
		_ = resp.Body.Close() // nothing is read
		return resp.StatusCode == http.StatusOK
	})
}

func (r *replica) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", r.port, path) }

// kill ends the process without warning.
func (r *replica) kill() {
	_ = r.cmd.Process.Kill() // it may be gone already
	_ = r.cmd.Wait()         // killed, so this is an error
}

// stop ends the process as an operator does, and returns its exit code.
func (r *replica) stop() int {
	r.cluster.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.cluster.t.Fatal(err)
	}
	_ = r.cmd.Wait() // the exit code says more
	return r.cmd.ProcessState.ExitCode()
}

// token signs in at the development issuer.
func (r *replica) token(sub, role string) string {
	t := r.cluster.t
	t.Helper()
	body, err := json.Marshal(map[string]string{"name": "Test", "role": role, "sub": sub})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(r.url("/dev/token"), "application/json", bytes.NewReader(body))
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
	s, err := ssetest.Open(context.WithoutCancel(r.cluster.t.Context()), r.url("/notifications/stream"), lastID, "Authorization", "Bearer "+token)
	if err != nil {
		r.cluster.t.Fatal(err)
	}
	r.cluster.t.Cleanup(s.Close)
	return s
}

// expect returns the next event, which must be of the type; heartbeats aside.
func expect(t testing.TB, s *ssetest.Stream, kind string) ssetest.Event {
	t.Helper()
	watchdog := time.AfterFunc(patience, s.Close)
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
	eventually(c.t, "a consumer is there", func() bool { return p.connect() == nil })
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

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// A syncBuffer takes what a process writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
