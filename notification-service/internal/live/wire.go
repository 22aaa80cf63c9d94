package live

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

// A message is what stands in the broker's queues for a moment.
type message struct {
	At            int64               `json:"at"` // of the commit, Unix nanoseconds
	Notifications []sealed            `json:"notifications,omitempty"`
	Feed          []notification.Data `json:"feed,omitempty"`
	// Compare says that something may have been lost before.
	Compare bool `json:"compare,omitempty"`
}

// A sealed notification hides its stream and its place in it: by either one
// could tell which reports come from the same person.
type sealed struct {
	To        string          `json:"to"`
	ID        uuid.UUID       `json:"id"`
	Data      json.RawMessage `json:"data"`
	CreatedAt time.Time       `json:"created_at"`
}

func encode(a announcement, keys *event.Keyring) ([]byte, error) {
	m := message{At: a.at.UnixNano(), Feed: a.batch.Feed}
	for _, n := range a.batch.Notifications {
		to := n.Epoch + "." + strconv.FormatInt(n.Seq, 10) + "." + string(n.Stream)
		m.Notifications = append(m.Notifications, sealed{keys.Seal(n.ID, to), n.ID, n.Data, n.CreatedAt})
	}
	return json.Marshal(m)
}

// decode returns what the message holds, and whether something was lost.
func decode(body []byte, keys *event.Keyring) (a announcement, compare bool, err error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return announcement{}, false, fmt.Errorf("read announcement: %w", err)
	}
	a = announcement{notification.Batch{Feed: m.Feed}, time.Unix(0, m.At)}
	for _, s := range m.Notifications {
		n, err := s.open(keys)
		if err != nil {
			return announcement{}, false, fmt.Errorf("read announcement: %w", err)
		}
		a.batch.Notifications = append(a.batch.Notifications, n)
	}
	return a, m.Compare, nil
}

func (s sealed) open(keys *event.Keyring) (notification.Notification, error) {
	to, err := keys.Open(s.ID, s.To)
	if err != nil {
		return notification.Notification{}, err
	}
	parts := strings.SplitN(to, ".", 3)
	if len(parts) != 3 {
		return notification.Notification{}, fmt.Errorf("recipient has %d parts, want 3", len(parts))
	}
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return notification.Notification{}, fmt.Errorf("number of notification: %w", err)
	}
	return notification.Notification{
		Stream: notification.Stream(parts[2]), Epoch: parts[0], Seq: seq,
		ID: s.ID, Data: s.Data, CreatedAt: s.CreatedAt,
	}, nil
}
