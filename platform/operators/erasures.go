package operators

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// An Eraser erases persons from the database; erasure.Eraser is one.
type Eraser interface {
	Request(ctx context.Context, actor, userID string) (erasure.Erasure, error)
	List(ctx context.Context, limit int) ([]erasure.Erasure, error)
}

// ErasureOperations are those on erasures.
func ErasureOperations(e Eraser) openapi.Operations {
	h := erasures{e}
	return openapi.Operations{
		"requestErasure": timed(service.Decoded(h.request)), "listErasures": timed(h.list), "eraseOwnData": timed(h.eraseOwnData),
	}
}

type erasures struct{ eraser Eraser }

// eraseOwnData erases the caller. The list of erasures must not name them.
func (h erasures) eraseOwnData(w http.ResponseWriter, r *http.Request) error {
	if _, err := h.eraser.Request(r.Context(), erasure.Self, auth.Must(r).ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// request handles POST /admin/…/erasures. The person is named in the body,
// because paths are in logs.
func (h erasures) request(w http.ResponseWriter, r *http.Request, request erasureRequest) error {
	if request.UserID != request.ConfirmUserID {
		return fault.NewInvalid("/confirm_user_id", "must be the same as user_id")
	}
	state, err := h.eraser.Request(r.Context(), auth.Must(r).ID, request.UserID)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusAccepted, erasureOf(state))
}

// list handles GET /admin/…/erasures.
func (h erasures) list(w http.ResponseWriter, r *http.Request) error {
	list, err := h.eraser.List(r.Context(), limit(r))
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, erasureList{service.Each(list, erasureOf)})
}

type erasureRequest struct {
	UserID        string `json:"user_id"`
	ConfirmUserID string `json:"confirm_user_id"`
}

type erasureList struct {
	Erasures []erasureView `json:"erasures"`
}

type erasureView struct {
	ID          uuid.UUID        `json:"id"`
	Actor       string           `json:"actor"`
	State       string           `json:"state"`
	RequestedAt time.Time        `json:"requested_at"`
	DoneAt      time.Time        `json:"done_at,omitzero"`
	Removed     map[string]int64 `json:"removed"`
	Left        []string         `json:"left"`
}

func erasureOf(e erasure.Erasure) erasureView {
	view := erasureView{
		ID: e.ID, Actor: e.Actor, State: "running", RequestedAt: e.RequestedAt, DoneAt: service.OrZero(e.DoneAt), Removed: e.Removed, Left: e.Left,
	}
	if e.DoneAt != nil {
		view.State = "done"
	}
	return view
}
