package consumertest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
)

// A Message is one to publish.
type Message struct {
	ID      string
	Key     event.Key
	Type    string // Key unless set
	Body    []byte
	Headers amqp.Table
}

// Vote returns a valid message for user's stream.
func (h *Harness) Vote(user string) Message {
	report := uuid.New()
	body, err := json.Marshal(&event.VoteReceived{
		Subject: event.Subject{ReportID: report, ReportVersion: 2, ReportTitle: "Pothole", Timestamp: time.Now().Unix()},
		VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(1)),
	})
	return h.message(event.VoteReceivedKey, report, user, body, err)
}

// Status returns a valid message of another queue for user's stream.
func (h *Harness) Status(user string) Message {
	report := uuid.New()
	body, err := json.Marshal(&event.StatusUpdate{
		Subject:   event.Subject{ReportID: report, ReportVersion: 2, ReportTitle: "Pothole", Timestamp: time.Now().Unix()},
		NewStatus: event.Resolved,
	})
	return h.message(event.StatusUpdatedKey, report, user, body, err)
}

func (h *Harness) message(key event.Key, report uuid.UUID, user string, body []byte, err error) Message {
	if err != nil {
		h.t.Fatal(err)
	}
	return Message{
		ID: uuid.NewString(), Key: key, Body: body,
		Headers: amqp.Table{event.RecipientHeader: h.keyring.Seal(report, user)},
	}
}

// Votes returns n messages for user's stream.
func (h *Harness) Votes(n int, user string) []Message {
	list := make([]Message, n)
	for i := range list {
		list[i] = h.Vote(user)
	}
	return list
}

// Publish sends the messages as the relay does and waits for their confirms.
func (h *Harness) Publish(messages ...Message) {
	h.t.Helper()
	if h.out == nil || h.out.IsClosed() {
		h.out = h.Channel()
		if err := h.out.Confirm(false); err != nil {
			h.t.Fatal(err)
		}
	}
	for page := range slices.Chunk(messages, 1000) {
		var confirms []*amqp.DeferredConfirmation
		for _, m := range page {
			c, err := h.out.PublishWithDeferredConfirm(h.Topology.Exchange(), string(m.Key), true, false, m.publishing())
			if err != nil {
				h.t.Fatal(err)
			}
			confirms = append(confirms, c)
		}
		for _, c := range confirms {
			if !c.Wait() {
				h.t.Fatal("the broker refused a message of the test")
			}
		}
	}
}

func (m Message) publishing() amqp.Publishing {
	if m.Type == "" {
		m.Type = string(m.Key)
	}
	return amqp.Publishing{
		MessageId: m.ID, Type: m.Type, Body: m.Body, Headers: m.Headers,
		DeliveryMode: amqp.Persistent, Timestamp: time.Now(), ContentType: "application/json",
	}
}
