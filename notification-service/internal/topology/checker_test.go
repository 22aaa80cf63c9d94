package topology

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
)

// A site is a virtual host with the declared topology, and its checker.
type site struct {
	*Topology
	conn    *amqp.Connection
	ch      *amqp.Channel
	checker *Checker
	log     *lines
}

// lines keeps what was logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.buf.Bytes(), []byte(text))
}

func newSite(t *testing.T) *site {
	t.Helper()
	url := rabbittest.Vhost(t)
	s := &site{Topology: New(event.Topology{}, nil), log: new(lines)}
	management, err := NewManagement(os.Getenv("TEST_RABBITMQ_MANAGEMENT_URL"), url)
	if err != nil {
		t.Fatal(err)
	}
	s.checker = NewChecker(s.Topology, management, rabbit.Config{URL: url, Log: zerolog.New(s.log)})
	if s.conn, err = amqp.Dial(url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	if err := s.Declare(s.conn); err != nil {
		t.Fatal(err)
	}
	if s.ch, err = s.conn.Channel(); err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits until check has nothing more to ask for.
func eventually(t *testing.T, what string, check func() (missing string)) {
	t.Helper()
	for deadline := time.After(patience); ; {
		missing := check()
		if missing == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: %s", what, missing)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheckerFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	must(t, s.checker.applyPolicies(t.Context()))
	eventually(t, "policies in effect", func() string {
		s.checker.Check(t.Context())
		if findings := s.checker.Findings(); len(findings) > 0 {
			return fmt.Sprint(findings)
		}
		return ""
	})
	queue := s.Names.Queue(event.VoteReceivedKey)
	must(t, s.ch.QueueUnbind(queue, string(event.VoteReceivedKey), s.Names.Exchange(), nil))
	_, err := s.ch.QueueDelete(s.Names.DeadLetterQueue(queue), false, false, false)
	must(t, err)
	_, err = s.ch.QueueDelete(s.Names.Retry("1s"), false, false, false)
	must(t, err)
	_, err = s.ch.QueueDeclare(s.Names.Retry("1s"), true, false, false, false, amqp.Table{"x-message-ttl": int32(9000)})
	must(t, err)
	must(t, s.ch.QueueBind(queue, "", s.Names.Retry("5s"), false, nil))
	s.checker.Check(t.Context())
	all := fmt.Sprint(s.checker.Findings())
	for _, want := range []string{
		`queue queue.vote_received is not bound to cityconnect.notifications by "report.vote.received"`,
		`queue queue.vote_received.dlq is missing`,
		`queue cityconnect.retry.1s has x-message-ttl = 9000, want 1000`,
		`queue queue.vote_received is bound to cityconnect.retry.5s, and gets a copy of every retry`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("not found: %s", want)
		}
	}
	t.Logf("%d findings", len(s.checker.Findings()))
}
