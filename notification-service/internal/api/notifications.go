package api

import (
	"errors"
	"net/http"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Notifications are what readers got, and what they have read of it.
type Notifications struct{ Store *postgres.Streams }

// Operations are those about notifications.
func (s Notifications) Operations() openapi.Operations {
	return openapi.Operations{
		"listNotifications": {Handler: s.listNotifications, Timeout: service.DefaultTimeout},
		"countUnread":       {Handler: s.countUnread, Timeout: service.DefaultTimeout},
		"markNotification":  {Handler: service.Decoded(s.markNotification), Timeout: service.DefaultTimeout},
		"markAllRead":       {Handler: service.Decoded(s.markAllRead), Timeout: service.DefaultTimeout},
		"setScope":          {Handler: service.Decoded(s.setScope), Timeout: service.DefaultTimeout},
	}
}

// listNotifications handles GET /notifications.
func (s Notifications) listNotifications(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query() // the document has filled in the defaults
	cursor, err := parseCursor("cursor", query.Get("cursor"))
	if err != nil {
		return err
	}
	page, err := s.Store.List(r.Context(), reader(r), cursor, query.Get("unread") == "true", int(service.Number(query.Get("limit"))))
	if err != nil {
		return blame("cursor", err)
	}
	body, err := pageOf(page)
	if err != nil {
		return err
	}
	if body.NextCursor != "" {
		service.NextLink(w, r, body.NextCursor)
	}
	return service.Encode(w, http.StatusOK, body)
}

// countUnread handles GET /notifications/unread-count.
func (s Notifications) countUnread(w http.ResponseWriter, r *http.Request) error {
	view, err := s.Store.View(r.Context(), reader(r))
	return service.Answer(w, http.StatusOK, notificationapi.UnreadCount{UnreadCount: view.Unread}, err)
}

// markNotification handles PATCH /notifications/{id}.
func (s Notifications) markNotification(w http.ResponseWriter, r *http.Request, mark notificationapi.ReadMark) error {
	item, err := s.Store.Mark(r.Context(), reader(r), openapi.PathID(r, "id"), mark.Read)
	if err != nil {
		return err
	}
	body, err := notificationOf(item)
	return service.Answer(w, http.StatusOK, body, err)
}

// markAllRead handles POST /notifications/read-all.
func (s Notifications) markAllRead(w http.ResponseWriter, r *http.Request, upTo notificationapi.ReadAll) error {
	cursor, err := parseCursor("/last_event_id", upTo.LastEventID)
	if err != nil {
		return err
	}
	view, err := s.Store.MarkAll(r.Context(), reader(r), cursor)
	return service.Answer(w, http.StatusOK, notificationapi.UnreadCount{UnreadCount: view.Unread}, blame("/last_event_id", err))
}

// setScope handles PUT /notifications/scope.
func (s Notifications) setScope(w http.ResponseWriter, r *http.Request, scope notificationapi.NotificationScope) error {
	view, err := s.Store.SetOnlyOwn(r.Context(), reader(r), scope.OnlyOwn)
	return service.Answer(w, http.StatusOK, notificationapi.UnreadCount{UnreadCount: view.Unread}, err)
}

// parseCursor reads a cursor that may be missing.
func parseCursor(field, text string) (notification.Cursor, error) {
	if text == "" {
		return nil, nil
	}
	cursor, err := notification.ParseCursor(text)
	return cursor, blame(field, err)
}

// blame says where the cursor was that err is about.
func blame(field string, err error) error {
	if errors.Is(err, notification.ErrCursor) {
		return &fault.Error{Kind: fault.Invalid, Field: field, Msg: notification.ErrCursor.Msg, Err: err}
	}
	return err
}
