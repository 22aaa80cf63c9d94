package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Store keeps dead letters and replays.
type Store interface {
	Stats(ctx context.Context) ([]deadletter.Stat, error)
	Groups(ctx context.Context, s deadletter.Selection) ([]deadletter.Group, error)
	Count(ctx context.Context, s deadletter.Selection) (int, error)
	Entries(ctx context.Context, s deadletter.Selection, before int64, limit int) ([]deadletter.Entry, error)
	Entry(ctx context.Context, id int64) (deadletter.Entry, []deadletter.Attempt, error)
	CreateReplay(ctx context.Context, actor string, o deadletter.ReplayRequest) (deadletter.Replay, error)
	Replay(ctx context.Context, id uuid.UUID) (deadletter.Replay, error)
	Replays(ctx context.Context, limit int) ([]deadletter.Replay, error)
	SetReplayState(ctx context.Context, actor string, id uuid.UUID, state deadletter.ReplayState) (deadletter.Replay, error)
	Discard(ctx context.Context, actor string, s deadletter.Selection, reason string) (int, error)
	Restore(ctx context.Context, actor string, id int64, reason string) error
	Edit(ctx context.Context, actor string, id int64, e deadletter.Edit) (int64, error)
	SetNote(ctx context.Context, actor string, c deadletter.Cause, version int64, text string) (deadletter.Note, error)
	RemoveNote(ctx context.Context, actor string, c deadletter.Cause, version int64) error
	AuditLog(ctx context.Context, before int64, limit int) ([]audit.Entry, error)
}

// letterOperations are those on dead letters.
func (a *API) letterOperations() openapi.Operations {
	return openapi.Operations{
		"deadLetterStats":      {Handler: a.stats, Timeout: service.DefaultTimeout},
		"deadLetterGroups":     {Handler: a.groups, Timeout: service.DefaultTimeout},
		"listDeadLetters":      {Handler: a.list, Timeout: service.DefaultTimeout},
		"readDeadLetter":       {Handler: a.read, Timeout: service.DefaultTimeout},
		"exportDeadLetters":    {Handler: a.export, Timeout: service.Unlimited},
		"editDeadLetter":       {Handler: a.edit, Timeout: service.DefaultTimeout},
		"discardDeadLetter":    {Handler: a.discardOne, Timeout: service.DefaultTimeout},
		"discardDeadLetters":   {Handler: a.discardMany, Timeout: service.DefaultTimeout},
		"restoreDeadLetter":    {Handler: a.restore, Timeout: service.DefaultTimeout},
		"noteDeadLetters":      {Handler: a.note, Timeout: service.DefaultTimeout},
		"removeDeadLetterNote": {Handler: a.removeNote, Timeout: service.DefaultTimeout},
		"listAudit":            {Handler: a.audit, Timeout: service.DefaultTimeout},
	}
}

// stats handles GET /admin/dlq/stats.
func (a *API) stats(w http.ResponseWriter, r *http.Request) error {
	stats, err := a.store.Stats(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, notificationapi.DeadLetterStats{Items: service.Each(stats, statOf)})
}

// groups handles GET /admin/dlq/groups.
func (a *API) groups(w http.ResponseWriter, r *http.Request) error {
	selected := selection(r)
	groups, err := a.store.Groups(r.Context(), selected)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, notificationapi.DeadLetterGroups{Items: service.Each(groups, groupOf)})
}

// note handles PUT /admin/dlq/groups/note.
func (a *API) note(w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[notificationapi.NewDeadLetterNote](r)
	if err != nil {
		return err
	}
	note, err := a.store.SetNote(r.Context(), auth.Must(r).ID, cause(r), ifMatch(r), request.Text)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, noteOf(note))
}

// removeNote handles DELETE /admin/dlq/groups/note.
func (a *API) removeNote(w http.ResponseWriter, r *http.Request) error {
	if err := a.store.RemoveNote(r.Context(), auth.Must(r).ID, cause(r), ifMatch(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// cause reads which group a request is about.
func cause(r *http.Request) deadletter.Cause {
	q := r.URL.Query()
	return deadletter.Cause{Queue: q.Get("queue"), Class: q.Get("error_class"), Group: q.Get("error_group")}
}

// list handles GET /admin/dlq/messages.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	limit, before := page(r)
	selected := selection(r)
	entries, err := a.store.Entries(r.Context(), selected, before, limit+1) // one more shows whether there is a next page
	if err != nil {
		return err
	}
	answer := notificationapi.DeadLetterPage{Items: service.Each(entries[:min(limit, len(entries))], letterOf)}
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
	letter := letterOf(entry)
	letter.Attempts = service.Each(attempts, attemptOf)
	return service.Encode(w, http.StatusOK, letter)
}

func (a *API) entry(r *http.Request) (deadletter.Entry, []deadletter.Attempt, error) {
	return a.store.Entry(r.Context(), service.Number(r.PathValue("id")))
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
			if lines.Encode(letterOf(e)) != nil {
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

// edit handles POST /admin/dlq/messages/{id}/edit.
func (a *API) edit(w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[notificationapi.DeadLetterEdit](r)
	if err != nil {
		return err
	}
	entry, _, err := a.entry(r)
	if err != nil {
		return err
	}
	edit, err := deadletter.NewEdit(&entry, request.Body)
	if broken, ok := errors.AsType[*deadletter.ContractError](err); ok {
		return service.InvalidInput.New("", service.Each(broken.Faults, func(text string) service.FieldError {
			return service.FieldError{Pointer: "/body", Detail: text}
		})...)
	}
	if err != nil {
		return err
	}
	if request.DryRun {
		return service.Encode(w, http.StatusOK, notificationapi.DeadLetterEdited{Changes: service.Each(edit.Changes, changeOf)})
	}
	id, err := a.store.Edit(r.Context(), auth.Must(r).ID, entry.ID, edit)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusCreated, notificationapi.DeadLetterEdited{ID: id, MessageID: edit.ID, Changes: service.Each(edit.Changes, changeOf)})
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
	request, err := service.Decode[notificationapi.DeadLetterDiscard](r)
	if err != nil {
		return err
	}
	return a.discard(w, r, deadletter.Selection{IDs: []int64{entry.ID}}, request.Reason)
}

// discardMany handles POST /admin/dlq/discard.
func (a *API) discardMany(w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[notificationapi.DeadLettersDiscard](r)
	if err != nil {
		return err
	}
	return a.discard(w, r, selectionOf(request.Selection), request.Reason)
}

func (a *API) discard(w http.ResponseWriter, r *http.Request, s deadletter.Selection, reason string) error {
	n, err := a.store.Discard(r.Context(), auth.Must(r).ID, s, reason)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, notificationapi.DeadLettersDiscarded{Discarded: int64(n)})
}

// restore handles POST /admin/dlq/messages/{id}/restore.
func (a *API) restore(w http.ResponseWriter, r *http.Request) error {
	entry, _, err := a.entry(r)
	if err != nil {
		return err
	}
	request, err := service.Decode[notificationapi.DeadLetterRestore](r)
	if err != nil {
		return err
	}
	if err := a.store.Restore(r.Context(), auth.Must(r).ID, entry.ID, request.Reason); err != nil {
		return err
	}
	return a.read(w, r)
}

// audit handles GET /admin/dlq/audit.
func (a *API) audit(w http.ResponseWriter, r *http.Request) error {
	limit, before := page(r)
	entries, err := a.store.AuditLog(r.Context(), before, limit+1)
	if err != nil {
		return err
	}
	answer := notificationapi.AuditPage{Items: service.Each(entries[:min(limit, len(entries))], auditOf)}
	if len(entries) > limit {
		answer.NextCursor = strconv.FormatInt(entries[limit-1].ID, 10)
	}
	return service.Encode(w, http.StatusOK, answer)
}
