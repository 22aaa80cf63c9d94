package admin

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/deadletter"
	"github.com/cityconnect/cityconnect/platform/service"
)

// dryRunResult says what a replay would send.
type dryRunResult struct {
	WouldSend int                `json:"would_send"`
	Groups    []deadletter.Group `json:"groups"`
}

// createReplay handles POST /admin/dlq/replays.
func (a *API) createReplay(w http.ResponseWriter, r *http.Request) error {
	o, err := service.Decode[deadletter.ReplayRequest](r)
	if err != nil {
		return err
	}
	if !o.DryRun {
		return a.replay(w, r, o)
	}
	o.Selection.State = deadletter.Open
	n, err := a.store.Count(r.Context(), o.Selection)
	if err != nil {
		return err
	}
	if o.Limit > 0 {
		n = min(n, o.Limit)
	}
	groups, err := a.store.Groups(r.Context(), o.Selection)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, dryRunResult{n, listOf(groups).Items})
}

// replayOne handles POST /admin/dlq/messages/{id}/replay.
func (a *API) replayOne(w http.ResponseWriter, r *http.Request) error {
	entry, _, err := a.entry(r)
	if err != nil {
		return err
	}
	if entry.State != deadletter.Open {
		return deadletter.ErrNotOpen
	}
	return a.replay(w, r, deadletter.ReplayRequest{Selection: deadletter.Selection{IDs: []int64{entry.ID}}})
}

// replay begins a replay and answers with it.
func (a *API) replay(w http.ResponseWriter, r *http.Request, o deadletter.ReplayRequest) error {
	replay, err := a.store.CreateReplay(r.Context(), actor(r), o)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/admin/dlq/replays/"+replay.ID.String())
	return service.Encode(w, http.StatusCreated, replay)
}

// recentReplays is how many replays are listed: those that anyone asks for.
const recentReplays = 100

// replays handles GET /admin/dlq/replays.
func (a *API) replays(w http.ResponseWriter, r *http.Request) error {
	replays, err := a.store.Replays(r.Context(), recentReplays)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, listOf(replays))
}

// readReplay handles GET /admin/dlq/replays/{id}.
func (a *API) readReplay(w http.ResponseWriter, r *http.Request) error {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("id that the document let pass: %w", err)
	}
	replay, err := a.store.Replay(r.Context(), id)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, replay)
}

// replayActions is where each action moves a replay.
var replayActions = map[string]deadletter.ReplayState{
	"pause": deadletter.Paused, "resume": deadletter.Running, "cancel": deadletter.Cancelled,
}

// setReplayState handles POST /admin/dlq/replays/{id}/{action}.
func (a *API) setReplayState(w http.ResponseWriter, r *http.Request) error {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("id that the document let pass: %w", err)
	}
	state, ok := replayActions[r.PathValue("action")]
	if !ok {
		return fmt.Errorf("action that the document let pass")
	}
	replay, err := a.store.SetReplayState(r.Context(), actor(r), id, state)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, replay)
}
