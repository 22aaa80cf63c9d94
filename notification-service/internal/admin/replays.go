package admin

import (
	"fmt"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// ReplayOperations are those on replays.
func (a Letters) ReplayOperations() openapi.Operations {
	return openapi.Operations{
		"createReplay":     {Handler: service.Decoded(a.createReplay), Timeout: service.DefaultTimeout},
		"replayDeadLetter": {Handler: a.replayOne, Timeout: service.DefaultTimeout},
		"listReplays":      {Handler: a.replays, Timeout: service.DefaultTimeout},
		"readReplay":       {Handler: a.readReplay, Timeout: service.DefaultTimeout},
		"setReplayState":   {Handler: a.setReplayState, Timeout: service.DefaultTimeout},
	}
}

// createReplay handles POST /admin/dlq/replays.
func (a Letters) createReplay(w http.ResponseWriter, r *http.Request, request notificationapi.ReplayRequest) error {
	selection := selectionOf(request.Selection)
	if !request.DryRun {
		return a.replay(w, r, deadletter.ReplayRequest{
			Selection: selection, Limit: int(request.Limit), PerSecond: int(request.RatePerS), Canary: int(request.Canary),
		})
	}
	selection.State = deadletter.Open
	n, err := a.Store.Count(r.Context(), selection)
	if err != nil {
		return err
	}
	if request.Limit > 0 {
		n = min(n, int(request.Limit))
	}
	groups, err := a.Store.Groups(r.Context(), selection)
	return service.Answer(w, http.StatusOK, notificationapi.ReplayDryRun{WouldSend: int64(n), Groups: service.Each(groups, groupOf)}, err)
}

// replayOne handles POST /admin/dlq/messages/{id}/replay.
func (a Letters) replayOne(w http.ResponseWriter, r *http.Request) error {
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
func (a Letters) replay(w http.ResponseWriter, r *http.Request, o deadletter.ReplayRequest) error {
	replay, err := a.Store.CreateReplay(r.Context(), auth.Must(r).ID, o)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/admin/dlq/replays/"+replay.ID.String())
	return service.Encode(w, http.StatusCreated, replayOf(replay))
}

// recentReplays is how many replays are listed: nobody asks for older ones.
const recentReplays = 100

// replays handles GET /admin/dlq/replays.
func (a Letters) replays(w http.ResponseWriter, r *http.Request) error {
	replays, err := a.Store.Replays(r.Context(), recentReplays)
	return service.Answer(w, http.StatusOK, notificationapi.Replays{Items: service.Each(replays, replayOf)}, err)
}

// readReplay handles GET /admin/dlq/replays/{id}.
func (a Letters) readReplay(w http.ResponseWriter, r *http.Request) error {
	replay, err := a.Store.Replay(r.Context(), openapi.PathID(r, "id"))
	return service.Answer(w, http.StatusOK, replayOf(replay), err)
}

// replayActions is where each action moves a replay.
var replayActions = map[string]deadletter.ReplayState{
	"pause": deadletter.Paused, "resume": deadletter.Running, "cancel": deadletter.Cancelled,
}

// setReplayState handles POST /admin/dlq/replays/{id}/{action}.
func (a Letters) setReplayState(w http.ResponseWriter, r *http.Request) error {
	state, ok := replayActions[r.PathValue("action")]
	if !ok {
		return fmt.Errorf("action that the document let pass")
	}
	replay, err := a.Store.SetReplayState(r.Context(), auth.Must(r).ID, openapi.PathID(r, "id"), state)
	return service.Answer(w, http.StatusOK, replayOf(replay), err)
}
