package api

import (
	"net/http"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Follows are the reports that readers follow.
type Follows struct{ Store *postgres.Follows }

// Operations are those about follows.
func (s Follows) Operations() openapi.Operations {
	return openapi.Operations{
		"listFollows": {Handler: s.listFollows, Timeout: service.DefaultTimeout},
		"follow":      {Handler: s.follow, Timeout: service.DefaultTimeout},
		"unfollow":    {Handler: s.unfollow, Timeout: service.DefaultTimeout},
	}
}

// listFollows handles GET /me/follows.
func (s Follows) listFollows(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Store.List(r.Context(), reader(r))
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, notificationapi.Follows{Follows: service.Each(list, func(f notification.Follow) notificationapi.Follow {
		return notificationapi.Follow{ReportID: f.ReportID, FollowedAt: f.FollowedAt.UTC()}
	})})
}

// follow handles PUT /me/follows/{report_id}.
func (s Follows) follow(w http.ResponseWriter, r *http.Request) error {
	return service.Done(w, s.Store.Follow(r.Context(), reader(r), openapi.PathID(r, "report_id")))
}

// unfollow handles DELETE /me/follows/{report_id}.
func (s Follows) unfollow(w http.ResponseWriter, r *http.Request) error {
	return service.Done(w, s.Store.Unfollow(r.Context(), reader(r), openapi.PathID(r, "report_id")))
}
