package consumer_test

import (
	"bytes"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

func TestChannelClosedByTheBroker(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	c, _ := h.Start()
	h.WaitSubscribed(1)
	const rounds, each = 5, 100
	for range rounds {
		h.Publish(h.Votes(each, "alice")...)
		c.BreakChannels()
		h.WaitSubscribed(1)
	}
	h.WaitEffects(rounds * each)
	h.CheckEffects(rounds * each)
	t.Logf("%d messages, channels closed %d times: %d effects", rounds*each, rounds, h.Effects())
}

// A frozen replica keeps its messages from the others until the broker misses
// its heartbeats.
func TestFrozenReplicaIsMissedSoon(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start()
	h.WaitSubscribed(1)
	u, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	management := rabbittest.Management(t, rabbittest.SharedManagementURL(t))
	h.Eventually("heartbeat of the consumer's connection", func() string {
		connections, err := management.ListVhostConnections(strings.TrimPrefix(u.Path, "/"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range connections {
			if c.ClientProperties["connection_name"] == "test consumer" && c.Timeout > 0 {
				if c.Timeout > 5 {
					t.Errorf("is %d s, want 5 at the most", c.Timeout)
				}
				return ""
			}
		}
		return "not found"
	})
}

func TestConsumerCancelled(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start()
	h.WaitSubscribed(1)
	h.Publish(h.Votes(20, "alice")...)
	h.WaitEffects(20)
	if _, err := h.Channel().QueueDelete(h.Topology.Queue(event.VoteReceivedKey), false, false, false); err != nil {
		t.Fatal(err)
	}
	h.WaitSubscribed(1) // to the queue that was declared again
	h.Publish(h.Votes(20, "alice")...)
	h.WaitEffects(40)
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

func (l *lines) contain(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.buf.Bytes(), []byte(text))
}

func TestDeadLetterExchangeUnbound(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	said := new(lines)
	h.Log = zerolog.New(said)
	h.Start()
	h.WaitSubscribed(1)
	queue := h.Topology.Queue(event.VoteReceivedKey)
	if err := h.Channel().QueueUnbind(h.Topology.DeadLetterQueue(queue), h.Topology.DeadLetterKey(queue), h.Topology.DeadLetterExchange(), nil); err != nil {
		t.Fatal(err)
	}
	var bad []consumertest.Message
	for range 5 {
		m := h.Vote("alice")
		m.Body = []byte("{")
		bad = append(bad, m)
	}
	h.Publish(append(bad, h.Votes(50, "alice")...)...)
	h.WaitEffects(50)
	got := h.DeadLetters(event.VoteReceivedKey, 5)
	if want := `is not bound to cityconnect.notifications.dlx by`; !said.contain(want) {
		t.Errorf("no finding says that a queue %s …", want)
	}
	t.Logf("%d dead letters with the exchange unbound: %d arrived after the binding was put back", len(bad), len(got))
}
