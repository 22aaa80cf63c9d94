package open311

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// maxUpdateID bounds the id of an update in the other system.
const maxUpdateID = 200

// meant are the statuses that those of updates mean, of which a report keeps the one that
// it has. Otherwise it gets the first that it can get. Those that extended lists come back
// as they went out.
var meant = map[string][]report.Status{
	"OPEN": statuses["open"], "CONFIRMED": statuses["open"], "REOPEN": statuses["open"],
	"IN_PROGRESS": {report.InProgress}, "ACTION_SCHEDULED": {report.InProgress}, "PLANNED": {report.InProgress}, "INVESTIGATING": {report.InProgress},
	"CLOSED": statuses["closed"], "FIXED": {report.Resolved},
	"NO_FURTHER_ACTION": {report.Rejected}, "NOT_COUNCILS_RESPONSIBILITY": {report.Rejected}, "DUPLICATE": {report.Rejected}, "UNABLE_TO_FIX": {report.Rejected},
	"INTERNAL_REFERRAL": slices.Concat(statuses["open"], statuses["closed"]),
}

// blamed are the parameters that the refusals of the report itself are about.
var blamed = map[fault.Kind]string{
	fault.NotFound: "service_request_id", fault.Invalid: "description", report.IllegalTransition: "status", report.PhotoNeeded: "status",
}

type accepted struct {
	ID string `xml:"update_id" json:"update_id"`
}

// update takes an update from the system of a department: its status and its words. What
// else it says, of the sender above all, is dropped. The answer has the id of the update in
// the list of updates, so that the sender recognises it there as its own.
func (h handlers) update(r *http.Request) (any, error) {
	form, err := readForm(r)
	if err != nil {
		return nil, err
	}
	by, err := h.connection(r.Context(), form.Get("api_key"))
	if err != nil {
		return nil, err
	}
	p := &parameters{values: form}
	theirs := strings.TrimSpace(p.line("update_id", maxUpdateID))
	note := p.block("description", maxDescription)
	among := meant[strings.ToUpper(strings.TrimSpace(form.Get("status")))]
	if theirs == "" {
		p.fail("update_id", "there; it tells a repetition from another update")
	}
	if among == nil {
		p.fail("status", "one of "+strings.Join(slices.Sorted(maps.Keys(meant)), ", "))
	}
	if p.err != nil {
		return nil, p.err
	}
	id, err := uuid.Parse(strings.TrimSpace(form.Get("service_request_id")))
	if err != nil {
		return nil, errNoRequest
	}
	version, err := h.Filer.Update(r.Context(), id, report.Move{
		To: among[0], Among: among, Note: note, By: by.ID, ByName: by.AsOfficial().Name, Scope: by.Scope,
	}, sha256.Sum256([]byte(theirs)))
	if err != nil {
		refusal, _ := errors.AsType[*fault.Error](err)
		switch name := blamed[fault.KindOf(err)]; name {
		case "":
			return nil, fmt.Errorf("take an update: %w", err)
		case "service_request_id":
			return nil, errNoRequest
		default:
			return nil, refuse(http.StatusBadRequest, name+": "+refusal.Msg)
		}
	}
	list := items[accepted]{"service_request_updates", "request_update", []accepted{{printable(theirs)}}}
	if version > 0 {
		list.all[0].ID = updateID(id, version)
	}
	return list, nil
}

// connection returns whose key it is.
func (h handlers) connection(ctx context.Context, key string) (report.User, error) {
	if !strings.HasPrefix(key, report.ConnectionPrefix) {
		return report.User{}, refuse(http.StatusForbidden,
			"api_key: must be the key of a department's connection, which begins with "+report.ConnectionPrefix+"; the city's operators make one")
	}
	user, err := h.Connection(ctx, key)
	if errors.Is(err, report.ErrNoConnection) {
		err = refuse(http.StatusForbidden, "api_key: must be a key of this city that is not revoked")
	}
	return user, err
}
