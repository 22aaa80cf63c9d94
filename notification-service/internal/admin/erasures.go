package admin

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// An Eraser erases persons from the database.
type Eraser interface {
	Request(ctx context.Context, actor, userID string) (erasure.Erasure, error)
	List(ctx context.Context, limit int) ([]erasure.Erasure, error)
}

// ErasureOperations are those about erasures.
func ErasureOperations(e Eraser) openapi.Operations {
	return openapi.Operations{
		"requestErasure": service.Operation{Handler: func(w http.ResponseWriter, r *http.Request) error { return requestErasure(e, w, r) }, Timeout: service.DefaultTimeout},
		"listErasures":   service.Operation{Handler: func(w http.ResponseWriter, r *http.Request) error { return listErasures(e, w, r) }, Timeout: service.DefaultTimeout},
	}
}

// requestErasure handles POST /admin/notifications/erasures. Who is to be erased
// is in the body, because paths are in logs.
func requestErasure(e Eraser, w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[api.ErasureRequest](r)
	if err != nil {
		return err
	}
	if request.UserID != request.ConfirmUserID {
		return fault.NewInvalid("/confirm_user_id", "want the same as in user_id")
	}
	state, err := e.Request(r.Context(), actor(r), request.UserID)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusAccepted, erasureOf(state))
}

// listErasures handles GET /admin/notifications/erasures.
func listErasures(e Eraser, w http.ResponseWriter, r *http.Request) error {
	limit, _, err := page(r)
	if err != nil {
		return err
	}
	list, err := e.List(r.Context(), limit)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, api.ErasureList{Erasures: each(list, erasureOf)})
}

func erasureOf(e erasure.Erasure) api.Erasure {
	view := api.Erasure{
		ID: e.ID, Actor: e.Actor, State: "running", RequestedAt: e.RequestedAt, DoneAt: valueOf(e.DoneAt),
		Removed: e.Removed, Left: e.Left,
	}
	if e.DoneAt != nil {
		view.State = "done"
	}
	return view
}
