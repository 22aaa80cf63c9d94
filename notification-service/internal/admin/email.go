package admin

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// An EmailStore counts mails.
type EmailStore interface {
	MailLanes(ctx context.Context) ([]email.LaneStatus, error)
	MailBounces(ctx context.Context) ([]email.BounceCount, error)
}

// EmailOperations are those on mails.
func EmailOperations(store EmailStore) openapi.Operations {
	return openapi.Operations{
		"readEmail": {
			Handler: func(w http.ResponseWriter, r *http.Request) error { return readEmail(store, w, r) },
			Timeout: service.DefaultTimeout,
		},
	}
}

// readEmail handles GET /admin/email.
func readEmail(store EmailStore, w http.ResponseWriter, r *http.Request) error {
	lanes, err := store.MailLanes(r.Context())
	if err != nil {
		return err
	}
	bounces, err := store.MailBounces(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, api.EmailStatus{
		Lanes: each(lanes, func(l email.LaneStatus) api.MailLane {
			return api.MailLane{
				Lane: l.Lane, Waiting: l.Waiting, OldestDueAt: valueOf(l.OldestDueAt), Rate: l.Rate, Failures: l.Failures,
				OpenUntil: valueOf(l.OpenUntil), LastSuccessAt: valueOf(l.LastSuccessAt), LastFailureAt: valueOf(l.LastFailureAt),
			}
		}),
		Bounces: each(bounces, func(b email.BounceCount) api.MailBounces {
			return api.MailBounces{Lane: b.Lane, Code: b.Code, Hard: b.Hard, Count: b.Count}
		}),
	})
}
