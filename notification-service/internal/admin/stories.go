package admin

import (
	"net/http"

	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/story"
)

// StoryOperations answer what happened to one message.
func StoryOperations(stories *postgres.Stories) openapi.Operations {
	return openapi.Operations{"messageStory": {Handler: tell(stories), Timeout: service.DefaultTimeout}}
}

// tell handles GET /admin/messages/{id}/story.
func tell(stories *postgres.Stories) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var entries []story.Entry
		if id := r.PathValue("id"); storable(id) { // others are unknown to the database
			var err error
			if entries, err = stories.Entries(r.Context(), id, openapi.QueryID(r, "report_id")); err != nil {
				return err
			}
		}
		return service.Encode(w, http.StatusOK, notificationapi.MessageStory{Entries: service.Each(entries, storyEntryOf)})
	}
}

func storyEntryOf(e story.Entry) notificationapi.StoryEntry {
	return notificationapi.StoryEntry{
		At: e.At, Kind: notificationapi.StoryEntryKind(e.Kind), Place: e.Place,
		Attempts: service.OrZero(e.Attempts), Class: service.OrZero(e.Class), Reason: service.OrZero(e.Reason), Status: service.OrZero(e.Status),
		DurationMs: service.OrZero(e.DurationMs), Until: service.OrZero(e.Until), State: notificationapi.DeliveryState(service.OrZero(e.State)),
		DeadLetterID: service.OrZero(e.DeadLetter), DeliveryID: service.OrZero(e.Delivery), ReplayID: service.OrZero(e.Replay), Number: service.OrZero(e.Number),
	}
}
