package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Letters are dead letters and their replays.
type Letters struct{ Store *deadletter.Store }

// Operations are those on dead letters.
func (a Letters) Operations() openapi.Operations {
	return openapi.Operations{
		"deadLetterStats":      {Handler: a.stats, Timeout: service.DefaultTimeout},
		"deadLetterGroups":     {Handler: a.groups, Timeout: service.DefaultTimeout},
		"listDeadLetters":      {Handler: a.list, Timeout: service.DefaultTimeout},
		"readDeadLetter":       {Handler: a.read, Timeout: service.DefaultTimeout},
		"exportDeadLetters":    {Handler: a.export, Timeout: service.Unlimited},
		"editDeadLetter":       {Handler: service.Decoded(a.edit), Timeout: service.DefaultTimeout},
		"discardDeadLetter":    {Handler: a.discardOne, Timeout: service.DefaultTimeout},
		"discardDeadLetters":   {Handler: service.Decoded(a.discardMany), Timeout: service.DefaultTimeout},
		"restoreDeadLetter":    {Handler: a.restore, Timeout: service.DefaultTimeout},
		"noteDeadLetters":      {Handler: service.Decoded(a.note), Timeout: service.DefaultTimeout},
		"removeDeadLetterNote": {Handler: a.removeNote, Timeout: service.DefaultTimeout},
		"listAudit":            {Handler: a.audit, Timeout: service.DefaultTimeout},
	}
}

// stats handles GET /admin/dlq/stats.
func (a Letters) stats(w http.ResponseWriter, r *http.Request) error {
	stats, err := a.Store.Stats(r.Context())
	return service.Answer(w, http.StatusOK, notificationapi.DeadLetterStats{Items: service.Each(stats, statOf)}, err)
}

// groups handles GET /admin/dlq/groups.
func (a Letters) groups(w http.ResponseWriter, r *http.Request) error {
	groups, err := a.Store.Groups(r.Context(), selection(r))
	return service.Answer(w, http.StatusOK, notificationapi.DeadLetterGroups{Items: service.Each(groups, groupOf)}, err)
}

// note handles PUT /admin/dlq/groups/note.
func (a Letters) note(w http.ResponseWriter, r *http.Request, request notificationapi.NewDeadLetterNote) error {
	note, err := a.Store.SetNote(r.Context(), auth.Must(r).ID, cause(r), ifMatch(r), request.Text)
	return service.Answer(w, http.StatusOK, noteOf(note), err)
}

// removeNote handles DELETE /admin/dlq/groups/note.
func (a Letters) removeNote(w http.ResponseWriter, r *http.Request) error {
	return service.Done(w, a.Store.RemoveNote(r.Context(), auth.Must(r).ID, cause(r), ifMatch(r)))
}

// cause reads which group a request is about.
func cause(r *http.Request) deadletter.Cause {
	q := r.URL.Query()
	return deadletter.Cause{Queue: q.Get("queue"), Class: q.Get("error_class"), Group: q.Get("error_group")}
}

// list handles GET /admin/dlq/messages.
func (a Letters) list(w http.ResponseWriter, r *http.Request) error {
	limit, before := page(r)
	entries, err := a.Store.Entries(r.Context(), selection(r), before, limit+1) // one more shows whether there is a next page
	entries, next := cut(entries, limit, func(last deadletter.Entry) string { return strconv.FormatInt(last.ID, 10) })
	return service.Answer(w, http.StatusOK, notificationapi.DeadLetterPage{Items: service.Each(entries, letterOf), NextCursor: next}, err)
}

// read handles GET /admin/dlq/messages/{id}.
func (a Letters) read(w http.ResponseWriter, r *http.Request) error {
	entry, attempts, err := a.entry(r)
	if err != nil {
		return err
	}
	letter := letterOf(entry)
	letter.Attempts = service.Each(attempts, attemptOf)
	return service.Encode(w, http.StatusOK, letter)
}

func (a Letters) entry(r *http.Request) (deadletter.Entry, []deadletter.Attempt, error) {
	return a.Store.Entry(r.Context(), service.Number(r.PathValue("id")))
}

// exportPage is how many dead letters an export reads at once.
const exportPage = 500

// export handles GET /admin/dlq/export: one JSON object a line.
func (a Letters) export(w http.ResponseWriter, r *http.Request) error {
	s := selection(r)
	entries, err := a.Store.Entries(r.Context(), s, 0, exportPage)
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
		entries, err = a.Store.Entries(r.Context(), s, entries[len(entries)-1].ID, exportPage)
		if err != nil {
			panic(http.ErrAbortHandler) // the answer has begun: cut it, so that it is not taken for whole
		}
	}
	return nil
}

// edit handles POST /admin/dlq/messages/{id}/edit.
func (a Letters) edit(w http.ResponseWriter, r *http.Request, request notificationapi.DeadLetterEdit) error {
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
	id, err := a.Store.Edit(r.Context(), auth.Must(r).ID, entry.ID, edit)
	return service.Answer(w, http.StatusCreated, notificationapi.DeadLetterEdited{ID: id, MessageID: edit.ID, Changes: service.Each(edit.Changes, changeOf)}, err)
}

// discardOne handles POST /admin/dlq/messages/{id}/discard.
func (a Letters) discardOne(w http.ResponseWriter, r *http.Request) error {
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
func (a Letters) discardMany(w http.ResponseWriter, r *http.Request, request notificationapi.DeadLettersDiscard) error {
	return a.discard(w, r, selectionOf(request.Selection), request.Reason)
}

func (a Letters) discard(w http.ResponseWriter, r *http.Request, s deadletter.Selection, reason string) error {
	n, err := a.Store.Discard(r.Context(), auth.Must(r).ID, s, reason)
	return service.Answer(w, http.StatusOK, notificationapi.DeadLettersDiscarded{Discarded: int64(n)}, err)
}

// restore handles POST /admin/dlq/messages/{id}/restore.
func (a Letters) restore(w http.ResponseWriter, r *http.Request) error {
	entry, _, err := a.entry(r)
	if err != nil {
		return err
	}
	request, err := service.Decode[notificationapi.DeadLetterRestore](r)
	if err != nil {
		return err
	}
	if err := a.Store.Restore(r.Context(), auth.Must(r).ID, entry.ID, request.Reason); err != nil {
		return err
	}
	return a.read(w, r)
}

// audit handles GET /admin/dlq/audit.
func (a Letters) audit(w http.ResponseWriter, r *http.Request) error {
	limit, before := page(r)
	entries, err := a.Store.AuditLog(r.Context(), before, limit+1)
	entries, next := cut(entries, limit, func(last audit.Entry) string { return strconv.FormatInt(last.ID, 10) })
	return service.Answer(w, http.StatusOK, notificationapi.AuditPage{Items: service.Each(entries, auditOf), NextCursor: next}, err)
}
