package api

import (
	"encoding/json"
	"fmt"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
)

// notificationOf returns a notification as the list shows it. In a stream it
// is the same, see docs/stream.md.
func notificationOf(item notification.Item) (notificationapi.Notification, error) {
	var out notificationapi.Notification
	if err := json.Unmarshal(item.Data, &out); err != nil {
		return notificationapi.Notification{}, fmt.Errorf("read notification %s: %w", item.ID, err)
	}
	out.ID, out.CreatedAt, out.Read = item.ID, item.CreatedAt.UTC(), item.Read
	return out, nil
}

func pageOf(page notification.Page) (notificationapi.NotificationPage, error) {
	body := notificationapi.NotificationPage{
		Notifications: make([]notificationapi.Notification, len(page.Items)),
		UnreadCount:   page.View.Unread,
		LastEventID:   page.View.Cursor().String(),
		OnlyOwn:       page.View.OnlyOwn,
	}
	for i, item := range page.Items {
		var err error
		if body.Notifications[i], err = notificationOf(item); err != nil {
			return notificationapi.NotificationPage{}, err
		}
	}
	if page.Next != nil {
		body.NextCursor = page.Next.String()
	}
	return body, nil
}
