package api

import (
	"net/http"

	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
)

type erasureHandlers struct{ erasures *erasure.Eraser }

func (h erasureHandlers) operations() operations {
	return operations{
		"requestErasure": {h.requestErasure, service.DefaultTimeout},
		"listErasures":   {h.listErasures, service.DefaultTimeout},
	}
}

// requestErasure handles POST /admin/reports/erasures. The person's id is in
// the body, because logs contain paths.
func (h erasureHandlers) requestErasure(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[ErasureRequest](r)
	if err != nil {
		return err
	}
	if req.UserID != req.ConfirmUserID {
		return fault.NewInvalid("/confirm_user_id", "must be the same as user_id")
	}
	state, err := h.erasures.Request(r.Context(), caller(r).ID, req.UserID)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusAccepted, erasureOf(state))
}

// listErasures handles GET /admin/reports/erasures.
func (h erasureHandlers) listErasures(w http.ResponseWriter, r *http.Request) error {
	limit, err := intParam(r, "limit")
	if err != nil {
		return err
	}
	list, err := h.erasures.List(r.Context(), limit)
	if err != nil {
		return err
	}
	out := ErasureList{Erasures: make([]Erasure, len(list))}
	for i, e := range list {
		out.Erasures[i] = erasureOf(e)
	}
	return service.Encode(w, http.StatusOK, out)
}

func erasureOf(e erasure.Erasure) Erasure {
	out := Erasure{
		ID: e.ID, Actor: e.Actor, State: "running", RequestedAt: e.RequestedAt, DoneAt: orZero(e.DoneAt),
		Removed: e.Removed, Left: e.Left,
	}
	if e.DoneAt != nil {
		out.State = "done"
	}
	return out
}
