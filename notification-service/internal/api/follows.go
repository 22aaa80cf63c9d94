package api

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/service"
)

// listFollows handles GET /me/follows.
func (s *server) listFollows(w http.ResponseWriter, r *http.Request) error {
	who, _ := reader(r)
	list, err := s.Store.Follows(r.Context(), who)
	if err != nil {
		return err
	}
	body := Follows{Follows: make([]Follow, len(list))}
	for i, f := range list {
		body.Follows[i] = Follow{ReportID: f.ReportID, FollowedAt: f.FollowedAt.UTC()}
	}
	return service.Encode(w, http.StatusOK, body)
}

// follow handles PUT /me/follows/{report_id}.
func (s *server) follow(w http.ResponseWriter, r *http.Request) error {
	report, err := followed(r)
	if err != nil {
		return err
	}
	who, _ := reader(r)
	if err := s.Store.Follow(r.Context(), who, report); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// unfollow handles DELETE /me/follows/{report_id}.
func (s *server) unfollow(w http.ResponseWriter, r *http.Request) error {
	report, err := followed(r)
	if err != nil {
		return err
	}
	who, _ := reader(r)
	if err := s.Store.Unfollow(r.Context(), who, report); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// followed returns the report that the request names.
func followed(r *http.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue("report_id"))
	if err != nil {
		return id, fmt.Errorf("id that the document let pass: %w", err)
	}
	return id, nil
}
