package admin

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// An EmailStore counts mails.
type EmailStore interface {
	MailFigures(ctx context.Context, rounding *crowd.Rounding) (email.Figures, error)
}

// EmailOperations are those on mails, whose figures are rounded.
func EmailOperations(store EmailStore, rounding *crowd.Rounding) openapi.Operations {
	return openapi.Operations{
		"readEmail": {
			Handler: func(w http.ResponseWriter, r *http.Request) error { return readEmail(store, rounding, w, r) },
			Timeout: service.DefaultTimeout,
		},
	}
}

// readEmail handles GET /admin/email.
func readEmail(store EmailStore, rounding *crowd.Rounding, w http.ResponseWriter, r *http.Request) error {
	figures, err := store.MailFigures(r.Context(), rounding)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, notificationapi.EmailStatus{
		AsOf: figures.AsOf,
		Lanes: service.Each(figures.Lanes, func(l email.LaneStatus) notificationapi.MailLane {
			return notificationapi.MailLane{Lane: l.Lane, Waiting: int32(l.Waiting), WaitingSince: service.OrZero(l.Since)}
		}),
		Bounces: service.Each(figures.Bounces, func(b email.BounceCount) notificationapi.MailBounces {
			return notificationapi.MailBounces{Lane: b.Lane, Code: b.Code, Hard: b.Hard, Count: int32(b.People)}
		}),
	})
}
