package photoworker

import (
	"context"

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
func (a *Announcer) Run(ctx context.Context) error {
	return rabbit.AnnounceAll(ctx, a.rabbit, a.exchange, "photo-worker", func(ctx context.Context) any {
		select {
		case <-ctx.Done():
			return nil
		case p := <-a.queue:
			return p
		}
	})
}
