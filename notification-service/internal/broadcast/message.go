package broadcast

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
)

// A message is an announcement on the wire.
type message struct {
	CommittedAt   int64                `json:"at"` // Unix nanoseconds
	Notifications []sealedNotification `json:"notifications,omitempty"`
	Feed          []notification.Data  `json:"feed,omitempty"`

	Moderated []notification.Moderation `json:"moderated,omitempty"`
	// Compare says that announcements may have been lost before this one.
	Compare bool `json:"compare,omitempty"`
}

// A sealedNotification hides its stream and its place in it: either would show
// which reports come from the same person.
type sealedNotification struct {
	Place     string          `json:"to"` // "<epoch>.<seq>.<stream>", sealed for ID
	ID        uuid.UUID       `json:"id"`
	Data      json.RawMessage `json:"data"`
	CreatedAt time.Time       `json:"created_at"`
}

// placeSize is the length that every place is padded to before it is sealed,
// since the ciphertext is as long as the text: the longest epoch, number and
// user id (package auth lets 255 bytes pass), and a byte that ends the text.
// Otherwise the length would distinguish users with long ids from those with short
// ones, and show how many notifications a user has had.
const placeSize = 8 + len(".9223372036854775807.user:") + 255 + 1

// seal returns a as it is sent.
func seal(a announcement, keys *event.Keyring) message {
	m := message{CommittedAt: a.committedAt.UnixNano(), Feed: a.batch.Feed, Moderated: a.batch.Moderated}
	for _, n := range a.batch.Notifications {
		place := n.Epoch + "." + strconv.FormatInt(n.Seq, 10) + "." + string(n.Stream)
		m.Notifications = append(m.Notifications, sealedNotification{
			keys.SealPadded(n.ID, place, placeSize), n.ID, n.Data, n.CreatedAt})
	}
	return m
}

// open reads the body of a message. compare reports that announcements may
// have been lost before it.
func open(body []byte, keys *event.Keyring) (a announcement, compare bool, err error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return announcement{}, false, fmt.Errorf("read announcement: %w", err)
	}
	a = announcement{notification.Batch{Feed: m.Feed, Moderated: m.Moderated}, time.Unix(0, m.CommittedAt)}
	for _, s := range m.Notifications {
		place, err := keys.Open(s.ID, s.Place)
		if err != nil {
			return announcement{}, false, fmt.Errorf("read announcement: %w", err)
		}
		parts := strings.SplitN(place, ".", 3)
		if len(parts) != 3 {
			return announcement{}, false, fmt.Errorf("read announcement: place has %d parts, must have 3", len(parts))
		}
		seq, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			return announcement{}, false, fmt.Errorf("read announcement: number of notification: %w", err)
		}
		a.batch.Notifications = append(a.batch.Notifications, notification.Notification{
			Stream: notification.Stream(parts[2]), Epoch: parts[0], Seq: seq,
			ID: s.ID, Data: s.Data, CreatedAt: s.CreatedAt,
		})
	}
	return a, m.Compare, nil
}
