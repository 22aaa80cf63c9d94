package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A FollowStore keeps which reports readers follow.
type FollowStore interface {
	Follow(ctx context.Context, reader notification.Reader, report uuid.UUID) error
	Unfollow(ctx context.Context, reader notification.Reader, report uuid.UUID) error
	List(ctx context.Context, reader notification.Reader) ([]notification.Follow, error)
}

// followOperations are those about follows.
func (s *server) followOperations() openapi.Operations {
	return openapi.Operations{
		"listFollows": {Handler: s.listFollows, Timeout: service.DefaultTimeout},
		"follow":      {Handler: s.follow, Timeout: service.DefaultTimeout},
		"unfollow":    {Handler: s.unfollow, Timeout: service.DefaultTimeout},
	}
}

// listFollows handles GET /me/follows.
func (s *server) listFollows(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Follows.List(r.Context(), reader(r))
	if err != nil {
		return err
	}
	body := notificationapi.Follows{Follows: make([]notificationapi.Follow, len(list))}
	for i, f := range list {
		body.Follows[i] = notificationapi.Follow{ReportID: f.ReportID, FollowedAt: f.FollowedAt.UTC()}
	}
	return service.Encode(w, http.StatusOK, body)
}

// follow handles PUT /me/follows/{report_id}.
func (s *server) follow(w http.ResponseWriter, r *http.Request) error {
	if err := s.Follows.Follow(r.Context(), reader(r), openapi.PathID(r, "report_id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// unfollow handles DELETE /me/follows/{report_id}.
func (s *server) unfollow(w http.ResponseWriter, r *http.Request) error {
	if err := s.Follows.Unfollow(r.Context(), reader(r), openapi.PathID(r, "report_id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
