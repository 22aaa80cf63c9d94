package photoworker

import (
	"context"
	"encoding/json"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// announcements is how many may wait for the connection. More are dropped: old
// ones are useless.
const announcements = 64

// An Announcer shows uploaders the progress of their photos, through
// notification-service. It uses no confirms, and drops what it cannot send at
// once: the verdict takes another way.
type Announcer struct {
	exchange string
	keys     *event.Keyring
	rabbit   rabbit.Config
	queue    chan event.PhotoProgress
}

// NewAnnouncer returns an Announcer that uses the broker at url.
func NewAnnouncer(url string, names event.Topology, keys *event.Keyring, log zerolog.Logger) *Announcer {
	return &Announcer{
		exchange: names.ProgressExchange(), keys: keys,
		rabbit: rabbit.Config{URL: url, Name: "announcer", Log: log},
		queue:  make(chan event.PhotoProgress, announcements),
	}
}

// Tell sends the progress of a photo to its uploader, if there is one. It never
// blocks.
func (a *Announcer) Tell(uploader string, p event.PhotoProgress) {
	if uploader == "" {
		return
	}
	p.To = a.keys.Seal(p.PhotoID, uploader)
	select {
	case a.queue <- p:
	default:
	}
}

// Run sends announcements until ctx ends.
func (a *Announcer) Run(ctx context.Context) error { return rabbit.Supervise(ctx, a.rabbit, a.session) }

func (a *Announcer) session(ctx context.Context, conn *amqp.Connection) error {
	if err := rabbit.DeclareExchange(conn, a.exchange, amqp.ExchangeFanout); err != nil {
		return err
	}
	ch, err := rabbit.OpenChannel(conn)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-a.queue:
			body, err := json.Marshal(p)
			if err != nil {
				return fmt.Errorf("encode progress: %w", err)
			}
			err = ch.PublishWithContext(ctx, a.exchange, "", false, false, amqp.Publishing{
				ContentType: "application/json", DeliveryMode: amqp.Transient, Body: body,
			})
			if err != nil {
				return fmt.Errorf("publish progress: %w", err)
			}
		}
	}
}
