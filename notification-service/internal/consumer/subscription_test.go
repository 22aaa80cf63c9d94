package consumer_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumertest"
	"github.com/cityconnect/cityconnect/platform/event"
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
