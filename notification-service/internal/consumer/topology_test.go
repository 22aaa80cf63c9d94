package consumer_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/management"
	"github.com/cityconnect/cityconnect/notification-service/internal/rigtest"
	"github.com/cityconnect/cityconnect/platform/event"
)

func TestChannelClosedByTheBroker(t *testing.T) {
	t.Parallel()
	r := rigtest.New(t)
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
	r := rigtest.New(t)
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

// ownDoctor returns a doctor that keeps what it finds.
func ownDoctor(t *testing.T, r *rigtest.Rig) *consumer.Doctor {
	t.Helper()
	client, err := management.New(os.Getenv("TEST_RABBITMQ_MANAGEMENT_URL"), r.URL)
	if err != nil {
		t.Fatal(err)
	}
	return consumer.NewDoctor(client, r.Topology, rigtest.Tuning(), r.Log)
}

func TestDoctorFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	r := rigtest.New(t)
	doctor := ownDoctor(t, r)
	_, stop := r.Start(func(c *consumer.Config) { c.Doctor = doctor })
	r.WaitSubscribed(1)
	r.Eventually("policies in effect", func() string {
		doctor.Examine(t.Context())
		if findings := doctor.Findings(); len(findings) > 0 {
			return fmt.Sprint(findings)
		}
		return ""
	})
	stop()
	ch, queue := r.Channel(), r.Topology.Queue(event.VoteReceivedKey)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(ch.QueueUnbind(queue, string(event.VoteReceivedKey), r.Topology.Exchange(), nil))
	_, err := ch.QueueDelete(r.Topology.DeadLetterQueue(queue), false, false, false)
	must(err)
	_, err = ch.QueueDelete(r.Topology.Retry("1s"), false, false, false)
	must(err)
	_, err = ch.QueueDeclare(r.Topology.Retry("1s"), true, false, false, false, amqp.Table{"x-message-ttl": int32(9000)})
	must(err)
	must(ch.QueueBind(queue, "", r.Topology.Retry("5s"), false, nil))
	doctor.Examine(t.Context())
	all := fmt.Sprint(doctor.Findings())
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
	t.Logf("%d findings", len(doctor.Findings()))
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
	r := rigtest.New(t)
	said := new(lines)
	r.Log = zerolog.New(said)
	doctor := ownDoctor(t, r)
	r.Start(func(c *consumer.Config) { c.Doctor = doctor })
	r.WaitSubscribed(1)
	queue := r.Topology.Queue(event.VoteReceivedKey)
	if err := r.Channel().QueueUnbind(r.Topology.DeadLetterQueue(queue), r.Topology.DeadLetterKey(queue), r.Topology.DeadLetterExchange(), nil); err != nil {
		t.Fatal(err)
	}
	var bad []rigtest.Message
	for range 5 {
		m := r.Vote("alice")
		m.Body = []byte("{")
		bad = append(bad, m)
	}
	r.Publish(append(bad, r.Votes(50, "alice")...)...)
	r.WaitEffects(50)
	got := r.DeadLetters(event.VoteReceivedKey, 5)
	if want := `is not bound to cityconnect.notifications.dlx by`; !said.contain(want) {
		t.Errorf("the doctor did not say that a queue %s …", want)
	}
	t.Logf("%d dead letters with the exchange unbound: %d arrived after the binding was put back", len(bad), len(got))
}
