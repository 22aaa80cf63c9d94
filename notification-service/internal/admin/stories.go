package admin

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/story"
)

// Stories are what happened to messages.
type Stories interface {
	Entries(ctx context.Context, messageID string, report uuid.UUID) ([]story.Entry, error)
}

// StoryOperations answer what happened to one message.
func StoryOperations(stories Stories) openapi.Operations {
	return openapi.Operations{"messageStory": {Handler: tell(stories), Timeout: service.DefaultTimeout}}
}

// tell handles GET /admin/messages/{id}/story.
func tell(stories Stories) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var entries []story.Entry
		if id := r.PathValue("id"); storable(id) { // others are unknown to the database
			var report uuid.UUID
			if text := r.URL.Query().Get("report_id"); text != "" {
				report = uuid.MustParse(text) // the document let it pass
			}
			var err error
			if entries, err = stories.Entries(r.Context(), id, report); err != nil {
				return err
			}
		}
		return service.Encode(w, http.StatusOK, notificationapi.MessageStory{Entries: each(entries, storyEntryOf)})
	}
}

func storyEntryOf(e story.Entry) notificationapi.StoryEntry {
	return notificationapi.StoryEntry{
		At: e.At, Kind: notificationapi.StoryEntryKind(e.Kind), Place: e.Place,
		Attempts: valueOf(e.Attempts), Class: valueOf(e.Class), Reason: valueOf(e.Reason), Status: valueOf(e.Status),
		DurationMs: valueOf(e.DurationMs), Until: valueOf(e.Until), State: notificationapi.DeliveryState(valueOf(e.State)),
		DeadLetterID: valueOf(e.DeadLetter), DeliveryID: valueOf(e.Delivery), ReplayID: valueOf(e.Replay), Number: valueOf(e.Number),
	}
}
