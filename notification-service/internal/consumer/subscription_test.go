package consumer_test

import (
	"bytes"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumertest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
)

func TestChannelClosedByTheBroker(t *testing.T) {
	t.Parallel()
	r := consumertest.New(t)
	c, _ := r.Start()
	r.WaitSubscribed(1)
	const rounds, each = 5, 100
	for range rounds {
		r.Publish(r.Votes(each, "alice")...)
		c.BreakChannels()
		r.WaitSubscribed(1)
	}
	r.WaitEffects(rounds * each)
	r.CheckStreams(rounds * each)
	t.Logf("%d messages, channels closed %d times: %d effects", rounds*each, rounds, r.Effects())
}

// A frozen replica keeps its messages from the others until the broker misses
// its heartbeats.
func TestFrozenReplicaIsMissedSoon(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t)
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
	r := consumertest.New(t)
	r.Start()
	r.WaitSubscribed(1)
	r.Publish(r.Votes(20, "alice")...)
	r.WaitEffects(20)
	if _, err := r.Channel().QueueDelete(r.Topology.Queue(event.VoteReceivedKey), false, false, false); err != nil {
		t.Fatal(err)
	}
	r.WaitSubscribed(1) // to the queue that was declared anew
	r.Publish(r.Votes(20, "alice")...)
	r.WaitEffects(40)
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
	r := consumertest.New(t)
	said := new(lines)
	r.Log = zerolog.New(said)
	r.Start()
	r.WaitSubscribed(1)
	queue := r.Topology.Queue(event.VoteReceivedKey)
	if err := r.Channel().QueueUnbind(r.Topology.DeadLetterQueue(queue), r.Topology.DeadLetterKey(queue), r.Topology.DeadLetterExchange(), nil); err != nil {
		t.Fatal(err)
	}
	var bad []consumertest.Message
	for range 5 {
		m := r.Vote("alice")
		m.Body = []byte("{")
		bad = append(bad, m)
	}
	r.Publish(append(bad, r.Votes(50, "alice")...)...)
	r.WaitEffects(50)
	got := r.DeadLetters(event.VoteReceivedKey, 5)
	if want := `is not bound to cityconnect.notifications.dlx by`; !said.contain(want) {
		t.Errorf("no finding says that a queue %s …", want)
	}
	t.Logf("%d dead letters with the exchange unbound: %d arrived after the binding was put back", len(bad), len(got))
}
