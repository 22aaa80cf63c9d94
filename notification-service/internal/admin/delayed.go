package admin

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Delayed are the messages that wait until a time.
type Delayed struct{ Store *delay.Store }

// Operations are those on messages that wait until a time.
func (a Delayed) Operations() openapi.Operations {
	return openapi.Operations{
		"listDelayedMessages":   {Handler: a.listDelayed, Timeout: service.DefaultTimeout},
		"releaseDelayedMessage": {Handler: a.releaseDelayed, Timeout: service.DefaultTimeout},
		"cancelDelayedMessage":  {Handler: a.cancelDelayed, Timeout: service.DefaultTimeout},
	}
}

// listDelayed handles GET /admin/delayed.
func (a Delayed) listDelayed(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit := int(service.Number(q.Get("limit")))
	selection := delay.Selection{Queue: q.Get("queue")}
	selection.From, selection.To = period(q)
	var after *delay.Position
	if cursor := q.Get("cursor"); cursor != "" {
		var err error
		if after, err = readPosition(cursor); err != nil {
			return fault.NewInvalid("/cursor", "must be the next_cursor of another page")
		}
	}
	entries, err := a.Store.Entries(r.Context(), selection, after, limit+1) // one more shows whether there is a next page
	entries, next := cut(entries, limit, writePosition)
	return service.Answer(w, http.StatusOK, notificationapi.DelayedMessagePage{Items: service.Each(entries, delayedOf), NextCursor: next}, err)
}

// writePosition returns the cursor behind e: its time in microseconds, its
// queue and its id.
func writePosition(e delay.Entry) string {
	position := strconv.FormatInt(e.DueAt.UnixMicro(), 10) + " " + e.Queue + " " + e.MessageID
	return base64.RawURLEncoding.EncodeToString([]byte(position))
}

// maxMicros is behind every time that a message can wait for: the year 10000.
const maxMicros = 253_402_300_800_000_000

// storable reports whether the database can have text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

func readPosition(cursor string) (*delay.Position, error) {
	position, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(string(position), " ", 3)
	if len(parts) != 3 {
		return nil, errors.New("a cursor has a time, a queue and an id")
	}
	micros, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || micros < 0 || micros > maxMicros || !storable(string(position)) {
		return nil, errors.New("a cursor has a time, a queue and an id")
	}
	return &delay.Position{DueAt: time.UnixMicro(micros), Queue: parts[1], MessageID: parts[2]}, nil
}

// releaseDelayed handles POST /admin/delayed/{queue}/{message_id}/release.
func (a Delayed) releaseDelayed(w http.ResponseWriter, r *http.Request) error {
	queue, id, err := delayedKey(r)
	if err != nil {
		return err
	}
	if err := a.Store.Release(r.Context(), auth.Must(r).ID, queue, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// cancelDelayed handles DELETE /admin/delayed/{queue}/{message_id}.
func (a Delayed) cancelDelayed(w http.ResponseWriter, r *http.Request) error {
	queue, id, err := delayedKey(r)
	if err != nil {
		return err
	}
	return service.Done(w, a.Store.Cancel(r.Context(), auth.Must(r).ID, queue, id, r.URL.Query().Get("reason")))
}

// delayedKey reads which message is meant. Anyone can publish an id with a
// slash: it comes escaped, and the router then takes the parts of the path as
// they came.
func delayedKey(r *http.Request) (queue, id string, err error) {
	queue, id = r.PathValue("queue"), r.PathValue("message_id")
	if r.URL.RawPath != "" {
		if queue, err = url.PathUnescape(queue); err == nil {
			id, err = url.PathUnescape(id)
		}
	}
	if err != nil || !storable(queue+id) {
		return "", "", delay.ErrNotFound
	}
	return queue, id, nil
}

// delayedOf returns a message as operators see it: persons who are named in it are
// masked, and the recipient stays sealed.
func delayedOf(e delay.Entry) notificationapi.DelayedMessage {
	return notificationapi.DelayedMessage{
		Queue: e.Queue, MessageID: e.MessageID, Type: e.Type, DueAt: e.DueAt, ParkedAt: e.ParkedAt,
		Properties: notificationapi.DeadLetterProperties{
			ContentType: e.Properties.ContentType, AppID: e.Properties.AppID, Timestamp: e.Properties.Timestamp,
		},
		Headers: deadletter.MaskHeaders(e.Headers),
		Body:    deadletter.MaskBody(e.Body),
	}
}
