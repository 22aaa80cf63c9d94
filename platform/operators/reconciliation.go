package operators

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Reconciliation is what groups of consumers found out about what was published;
// reconciliation.Results is one.
type Reconciliation interface {
	Groups(ctx context.Context) ([]reconciliation.Summary, error)
	Messages(ctx context.Context, s reconciliation.Selection) ([]reconciliation.Message, error)
	Close(ctx context.Context, c reconciliation.Closing) (int, error)
}

// ReconciliationOperations are those on messages that groups have not found.
func ReconciliationOperations(of Reconciliation) openapi.Operations {
	h := missing{of}
	return openapi.Operations{
		"readReconciliation":   timed(h.read),
		"listMissingMessages":  timed(h.list),
		"closeMissingMessages": timed(service.Decoded(h.close)),
	}
}

type missing struct{ of Reconciliation }

// read handles GET /admin/…/reconciliation.
func (h missing) read(w http.ResponseWriter, r *http.Request) error {
	groups, err := h.of.Groups(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reconciliationView{service.Each(groups, reconciliationGroupOf)})
}

// list handles GET /admin/…/reconciliation/messages.
func (h missing) list(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	selection := reconciliation.Selection{
		Group: query.Get("group"), State: reconciliation.State(query.Get("state")), Limit: limit(r) + 1, // one more shows whether there is a next page
	}
	var err error
	if cursor := query.Get("cursor"); cursor != "" {
		if selection.After, err = readPosition(cursor); err != nil {
			return fault.NewInvalid("/cursor", "must be the next_cursor of another page")
		}
	}
	found, err := h.of.Messages(r.Context(), selection)
	if err != nil {
		return err
	}
	page := missingPage{Messages: service.Each(found[:min(limit(r), len(found))], missingMessageOf)}
	if len(found) > limit(r) {
		page.NextCursor = cursorBehind(found[limit(r)-1])
		service.NextLink(w, r, page.NextCursor)
	}
	return service.Encode(w, http.StatusOK, page)
}

// close handles POST /admin/…/reconciliation/messages/close.
func (h missing) close(w http.ResponseWriter, r *http.Request, request missingClose) error {
	closed, err := h.of.Close(r.Context(), reconciliation.Closing{
		Actor: auth.Must(r).ID, Group: request.Group, Reason: request.Reason, Messages: request.MessageIDs,
	})
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, missingClosed{closed})
}

// cursorBehind returns the cursor behind m: its time in microseconds, its group and its
// id.
func cursorBehind(m reconciliation.Message) string {
	return strings.Join([]string{strconv.FormatInt(m.To.UnixMicro(), 10), m.Group, m.ID.String()}, ".")
}

func readPosition(cursor string) (p reconciliation.Position, err error) {
	micros, rest, _ := strings.Cut(cursor, ".")
	group, id, _ := strings.Cut(rest, ".")
	at, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return p, err
	}
	p.To, p.Group = time.UnixMicro(at), group
	p.ID, err = uuid.Parse(id)
	return p, err
}

type reconciliationView struct {
	Groups []reconciliationGroup `json:"groups"`
}

type reconciliationGroup struct {
	Group         string    `json:"group"`
	Missing       int64     `json:"missing"`
	Unknown       int64     `json:"unknown"`
	Awaited       int64     `json:"awaited"`
	Gap           int64     `json:"gap"`
	LateSeconds   float64   `json:"late_seconds"`
	ComparedUntil time.Time `json:"compared_until,omitzero"`
}

type missingPage struct {
	Messages   []missingMessage `json:"messages"`
	NextCursor string           `json:"next_cursor,omitempty"`
}

type missingClose struct {
	Group      string      `json:"group"`
	MessageIDs []uuid.UUID `json:"message_ids"`
	Reason     string      `json:"reason"`
}

type missingClosed struct {
	Closed int `json:"closed"`
}

type missingMessage struct {
	MessageID      uuid.UUID            `json:"message_id"`
	Group          string               `json:"group"`
	State          reconciliation.State `json:"state"`
	RoutingKey     event.Key            `json:"routing_key,omitempty"`
	PublishedFrom  time.Time            `json:"published_from"`
	PublishedUntil time.Time            `json:"published_until"`
	ReportID       *uuid.UUID           `json:"report_id,omitempty"`
	ReportVersion  int64                `json:"report_version,omitempty"`
}

func reconciliationGroupOf(s reconciliation.Summary) reconciliationGroup {
	return reconciliationGroup{
		Group: s.Group, Missing: s.Missing + s.Deleted, Unknown: s.Unknown, Awaited: s.Awaited, Gap: s.Gap,
		LateSeconds: s.Late.Seconds(), ComparedUntil: s.Compared,
	}
}

func missingMessageOf(m reconciliation.Message) missingMessage {
	return missingMessage{
		MessageID: m.ID, Group: m.Group, State: m.State, RoutingKey: m.Key, PublishedFrom: m.From, PublishedUntil: m.To,
		ReportID: m.ReportID, ReportVersion: m.ReportVersion,
	}
}
