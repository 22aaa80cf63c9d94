package admin

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/cityconnect/cityconnect/notification-service/internal/deadletter"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A letterView is a dead letter as operators see it.
type letterView struct {
	deadletter.Entry
	Body     json.RawMessage      `json:"body"`
	Attempts []deadletter.Attempt `json:"attempts,omitempty"`
}

func view(e deadletter.Entry) letterView {
	body := deadletter.MaskBody(e.Body)
	e.Headers = deadletter.MaskHeaders(e.Headers)
	return letterView{Entry: e, Body: body}
}

// stats handles GET /admin/dlq/stats.
func (a *API) stats(w http.ResponseWriter, r *http.Request) error {
	stats, err := a.store.Stats(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, listOf(stats))
}

// groups handles GET /admin/dlq/groups.
func (a *API) groups(w http.ResponseWriter, r *http.Request) error {
	groups, err := a.store.Groups(r.Context(), selection(r))
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, listOf(groups))
}

// list handles GET /admin/dlq/messages.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	limit, before, err := page(r)
	if err != nil {
		return err
	}
	entries, err := a.store.Entries(r.Context(), selection(r), before, limit+1) // one more tells whether there is a next page
	if err != nil {
		return err
	}
	answer := list[letterView]{Items: []letterView{}}
	for _, e := range entries[:min(limit, len(entries))] {
		answer.Items = append(answer.Items, view(e))
	}
	if len(entries) > limit {
		answer.NextCursor = strconv.FormatInt(entries[limit-1].ID, 10)
	}
	return service.Encode(w, http.StatusOK, answer)
}

// read handles GET /admin/dlq/messages/{id}.
func (a *API) read(w http.ResponseWriter, r *http.Request) error {
	entry, attempts, err := a.entry(r)
	if err != nil {
		return err
	}
	shown := view(entry)
	shown.Attempts = attempts
	return service.Encode(w, http.StatusOK, shown)
}

func (a *API) entry(r *http.Request) (deadletter.Entry, []deadletter.Attempt, error) {
	id, err := number(r.PathValue("id"), 0)
	if err != nil {
		return deadletter.Entry{}, nil, err
	}
	return a.store.Entry(r.Context(), id)
}

// exportPage is how many dead letters an export reads at once.
const exportPage = 500

// export handles GET /admin/dlq/export: one JSON object a line.
func (a *API) export(w http.ResponseWriter, r *http.Request) error {
	s := selection(r)
	entries, err := a.store.Entries(r.Context(), s, 0, exportPage)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="dead-letters.ndjson"`)
	w.Header().Set("Cache-Control", "no-store")
	lines := json.NewEncoder(w)
	for len(entries) > 0 {
		for _, e := range entries {
			if lines.Encode(view(e)) != nil {
				return nil // the client left
			}
		}
		entries, err = a.store.Entries(r.Context(), s, entries[len(entries)-1].ID, exportPage)
		if err != nil {
			panic(http.ErrAbortHandler) // the answer has begun: cut it, so that it is not taken for whole
		}
	}
	return nil
}

// An editRequest asks for another body.
type editRequest struct {
	Body   json.RawMessage `json:"body"`
	DryRun bool            `json:"dry_run"`
}

// edited answers an edit. ID is the new dead letter's, unless it was a dry
// run.
type edited struct {
	ID        int64               `json:"id,omitempty"`
	MessageID string              `json:"message_id,omitempty"`
	Changes   []deadletter.Change `json:"changes"`
}

// edit handles POST /admin/dlq/messages/{id}/edit.
func (a *API) edit(w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[editRequest](r)
	if err != nil {
		return err
	}
	entry, _, err := a.entry(r)
	if err != nil {
		return err
	}
	edit, err := deadletter.NewEdit(&entry, request.Body)
	if err != nil {
		return err
	}
	if request.DryRun {
		return service.Encode(w, http.StatusOK, edited{Changes: edit.Changes})
	}
	id, err := a.store.Edit(r.Context(), actor(r), entry.ID, edit)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusCreated, edited{ID: id, MessageID: edit.ID, Changes: edit.Changes})
}

// A discardRequest says what to give up, and why.
type discardRequest struct {
	Selection deadletter.Selection `json:"selection"`
	Reason    string               `json:"reason"`
}

type discarded struct {
	Discarded int `json:"discarded"`
}

// discardOne handles POST /admin/dlq/messages/{id}/discard.
func (a *API) discardOne(w http.ResponseWriter, r *http.Request) error {
	entry, _, err := a.entry(r)
	if err != nil {
		return err
	}
	if entry.State != deadletter.Open {
		return deadletter.ErrNotOpen
	}
	return a.giveUp(w, r, func(*discardRequest) deadletter.Selection {
		return deadletter.Selection{IDs: []int64{entry.ID}}
	})
}

// discard handles POST /admin/dlq/discard.
func (a *API) discard(w http.ResponseWriter, r *http.Request) error {
	return a.giveUp(w, r, func(request *discardRequest) deadletter.Selection { return request.Selection })
}

func (a *API) giveUp(w http.ResponseWriter, r *http.Request, of func(*discardRequest) deadletter.Selection) error {
	request, err := service.Decode[discardRequest](r)
	if err != nil {
		return err
	}
	n, err := a.store.Discard(r.Context(), actor(r), of(&request), request.Reason)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, discarded{n})
}

// audit handles GET /admin/dlq/audit.
func (a *API) audit(w http.ResponseWriter, r *http.Request) error {
	limit, before, err := page(r)
	if err != nil {
		return err
	}
	entries, err := a.store.AuditLog(r.Context(), before, limit+1)
	if err != nil {
		return err
	}
	answer := listOf(entries[:min(limit, len(entries))])
	if len(entries) > limit {
		answer.NextCursor = strconv.FormatInt(entries[limit-1].ID, 10)
	}
	return service.Encode(w, http.StatusOK, answer)
}
