package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// bodySize is what a message weighs.
const bodySize = 512

// window is how many messages are not confirmed yet.
const window = 500

// failingSuffix ends the ids of messages that fail for a second.
const failingSuffix = "-fails"

// streams is over how many users the messages spread.
const streams = 1000

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

// publish declares the queue as notification-service does and fills it.
func (b *bench) publish(brokerURL string, l load) error {
	conn, err := amqp.Dial(brokerURL)
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	defer conn.Close()
	queue := b.queue()
	err = rabbit.DeclareQueue(conn, queue, amqp.Table{
		"x-queue-type": "quorum", "x-dead-letter-exchange": b.topology.DeadLetterExchange(),
		"x-dead-letter-routing-key": b.topology.DeadLetterKey(queue),
	})
	if err != nil {
		return err
	}
	publisher, err := rabbit.NewPublisher(conn, window)
	if err != nil {
		return err
	}
	keyring, err := event.ParseKeyring(b.key)
	if err != nil {
		return err
	}
	defer publisher.Close()
	var unanswered sync.WaitGroup
	var refused error
	for i, failing := range l.shuffled() {
		unanswered.Add(1)
		err := publisher.Publish("", queue, message(keyring, i, failing), func(o rabbit.Outcome) {
			refused = errors.Join(refused, o.Err())
			unanswered.Done()
		})
		if err != nil {
			return err
		}
	}
	unanswered.Wait()
	return refused
}

func (b *bench) queue() string { return b.topology.Queue(event.VoteReceivedKey) }

// message returns the i-th message. Its ids are of the kind that report-service
// gives, which grow with time: random ones would make every row touch a page of
// its own in each index.
func message(keyring *event.Keyring, i int, failing bool) amqp.Publishing {
	report := uuid.Must(uuid.NewV7())
	vote := event.VoteReceived{
		Subject: event.Subject{ReportID: report, ReportVersion: 1, ReportTitle: "x", Timestamp: time.Now().Unix()},
		VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(1)),
	}
	body, err := json.Marshal(vote)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	body = bytes.Replace(body, []byte(`"x"`), []byte(`"`+strings.Repeat("x", bodySize-len(body)+1)+`"`), 1)
	id := uuid.Must(uuid.NewV7()).String()
	if failing {
		id += failingSuffix
	}
	return amqp.Publishing{
		MessageId: id, Type: string(event.VoteReceivedKey), DeliveryMode: amqp.Persistent, Body: body, Timestamp: time.Now(),
		Headers: amqp.Table{event.RecipientHeader: keyring.Seal(report, fmt.Sprintf("user-%d", i%streams))},
	}
}
