package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/service"
)

// listNotifications handles GET /notifications.
func (s *server) listNotifications(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query() // the document has filled in the defaults
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		return fmt.Errorf("limit that the document let pass: %w", err)
	}
	cursor, err := parseCursor("cursor", query.Get("cursor"))
	if err != nil {
		return err
	}
	who, _ := reader(r)
	page, err := s.Store.List(r.Context(), who, cursor, query.Get("unread") == "true", limit)
	if err != nil {
		return misfit("cursor", err)
	}
	body, err := pageOf(page)
	if err != nil {
		return err
	}
	if body.NextCursor != "" {
		w.Header().Set("Link", nextLink(query, body.NextCursor))
	}
	return encode(w, body)
}

// nextLink returns the Link header (RFC 8288) of the page that begins at
// cursor.
func nextLink(query url.Values, cursor string) string {
	query.Set("cursor", cursor)
	return fmt.Sprintf(`</notifications?%s>; rel="next"`, query.Encode())
}

// countUnread handles GET /notifications/unread-count.
func (s *server) countUnread(w http.ResponseWriter, r *http.Request) error {
	who, _ := reader(r)
	view, err := s.Store.View(r.Context(), who)
	if err != nil {
		return err
	}
	return encode(w, UnreadCount{UnreadCount: view.Unread})
}

// markNotification handles PATCH /notifications/{id}.
func (s *server) markNotification(w http.ResponseWriter, r *http.Request) error {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("id that the document let pass: %w", err)
	}
	mark, err := decode[ReadMark](r)
	if err != nil {
		return err
	}
	who, _ := reader(r)
	item, err := s.Store.Mark(r.Context(), who, id, mark.Read)
	if err != nil {
		return err
	}
	body, err := notificationOf(item)
	if err != nil {
		return err
	}
	return encode(w, body)
}

// markAllRead handles POST /notifications/read-all.
func (s *server) markAllRead(w http.ResponseWriter, r *http.Request) error {
	upTo, err := decode[ReadAll](r)
	if err != nil {
		return err
	}
	cursor, err := parseCursor("/last_event_id", upTo.LastEventID)
	if err != nil {
		return err
	}
	who, _ := reader(r)
	view, err := s.Store.MarkAll(r.Context(), who, cursor)
	if err != nil {
		return misfit("/last_event_id", err)
	}
	return encode(w, UnreadCount{UnreadCount: view.Unread})
}

// parseCursor reads a cursor that may be missing.
func parseCursor(pointer, text string) (notification.Cursor, error) {
	if text == "" {
		return nil, nil
	}
	cursor, err := notification.ParseCursor(text)
	if err != nil {
		return nil, misfit(pointer, err)
	}
	return cursor, nil
}

// misfit says where the cursor stood that an error is about.
func misfit(pointer string, err error) error {
	if errors.Is(err, notification.ErrCursor) {
		return service.InvalidInput.New("", service.FieldError{
			Pointer: pointer, Detail: "not a cursor of your streams; begin again without one"})
	}
	return err
}

// translate maps the failures of the domain to problems.
func translate(err error) (service.Problem, bool) {
	if errors.Is(err, notification.ErrNotFound) {
		return service.NotFound.New("no such notification"), true
	}
	return service.Problem{}, false
}

// decode reads a body that was checked against the document, and may be
// missing where that allows it.
func decode[T any](r *http.Request) (T, error) {
	var body T
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil && !errors.Is(err, io.EOF) {
		return body, fmt.Errorf("decode body: %w", err)
	}
	return body, nil
}

// encode answers with body as JSON. What is answered depends on who asks, so
// that nobody else may keep it.
func encode(w http.ResponseWriter, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(data) // a client that left is no fault of ours
	return nil
}
