package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/operators"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/story"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// A Relay reports its state.
type Relay interface {
	State() relay.State
}

type outboxHandlers struct {
	outbox  *outbox.Store
	relay   Relay
	photos  *story.Store // of the groups whose tables are in this database
	history func(ctx context.Context, span time.Duration) (history.History, error)
}

func (h outboxHandlers) operations() operations {
	return operations{
		"outboxStats":               {Handler: h.outboxStats, Timeout: service.DefaultTimeout},
		"outboxHistory":             operators.History(h.history),
		"outboxMessageStory":        {Handler: h.outboxStory, Timeout: service.DefaultTimeout},
		"listOutboxMessages":        {Handler: h.listOutbox, Timeout: service.DefaultTimeout},
		"listRefusedOutboxMessages": {Handler: h.listRefused, Timeout: service.DefaultTimeout},
		"retryOutboxMessage":        {Handler: h.retryOutbox, Timeout: service.DefaultTimeout},
		"retryOutboxMessages":       {Handler: h.retryAllOutbox, Timeout: service.DefaultTimeout},
		"republishOutboxMessages":   {Handler: h.republishOutbox, Timeout: service.DefaultTimeout},
		"discardOutboxMessage":      {Handler: h.discardOutbox, Timeout: service.DefaultTimeout},
		"outboxAudit":               {Handler: h.outboxAudit, Timeout: service.DefaultTimeout},
	}
}

// outboxStats handles GET /admin/outbox/stats.
func (h outboxHandlers) outboxStats(w http.ResponseWriter, r *http.Request) error {
	stats, err := h.outbox.Stats(r.Context())
	if err != nil {
		return err
	}
	state := h.relay.State()
	out := reportapi.OutboxStats{
		Pending: stats.Pending, Delayed: stats.Delayed, Failed: stats.Failed,
		OldestPendingSeconds: stats.OldestAge.Seconds(),
		Replicas:             stats.Members, Shards: make([]reportapi.OutboxShard, len(stats.Shards)),
		Relay: reportapi.RelayState{
			ID: state.ID, Connected: state.Connected, Since: state.Since, LastError: state.LastError, Blocked: state.Blocked,
			Shards: int32(state.Shards), LeaseValid: state.LeaseValid,
			InFlight: int32(state.InFlight), Window: int32(state.Window),
			OpenCircuits: state.OpenCircuits, LastPublish: state.LastPublish, PublishedPerS: state.PublishedPerSecond,
			ConfirmP50Ms: milliseconds(state.ConfirmP50), ConfirmP99Ms: milliseconds(state.ConfirmP99),
			Returned: state.Returned, Nacked: state.Nacked, Connects: state.Connects, BlockedSeconds: state.BlockedFor.Seconds(),
		},
	}
	for i, shard := range stats.Shards {
		out.Shards[i] = reportapi.OutboxShard{
			Shard: int32(shard.Shard), Pending: shard.Pending, Delayed: shard.Delayed, Failed: shard.Failed,
			OldestPendingSeconds: shard.OldestAge.Seconds(),
			Owner:                orZero(shard.Owner), Epoch: shard.Epoch, LeaseUntil: orZero(shard.LeaseUntil),
		}
	}
	return service.Encode(w, http.StatusOK, out)
}

// listOutbox handles GET /admin/outbox/messages.
func (h outboxHandlers) listOutbox(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	filter := outbox.Filter{
		Status: outbox.Status(query.Get("status")), RoutingKey: query.Get("routing_key"), Cursor: query.Get("cursor"),
		TraceID: query.Get("trace_id"),
	}
	var err error
	if filter.Limit, err = intParam(r, "limit"); err != nil {
		return err
	}
	if id := query.Get("report_id"); id != "" {
		filter.ReportID = uuid.MustParse(id) // the document has checked it
	}
	if id := query.Get("message_id"); id != "" {
		filter.ID = uuid.MustParse(id) // likewise
	}
	page, err := h.outbox.List(r.Context(), filter)
	if err != nil {
		return err
	}
	if page.Next != "" {
		service.NextLink(w, r, page.Next)
	}
	out := reportapi.OutboxPage{Messages: make([]reportapi.OutboxMessage, len(page.Messages)), NextCursor: page.Next}
	for i, m := range page.Messages {
		out.Messages[i] = outboxMessageOf(m)
	}
	return service.Encode(w, http.StatusOK, out)
}

func outboxMessageOf(m outbox.Message) reportapi.OutboxMessage {
	return reportapi.OutboxMessage{
		ID: m.ID, RoutingKey: reportapi.RoutingKey(m.RoutingKey), Status: reportapi.OutboxStatus(m.Status),
		ReportID: m.ReportID, ReportVersion: m.ReportVersion, CreatedAt: m.CreatedAt,
		PublishedAt: orZero(m.PublishedAt), NextAttemptAt: orZero(m.NextAttemptAt),
		RetryCount: m.RetryCount, LastError: orZero(m.LastError),
	}
}

// listRefused handles GET /admin/outbox/refused.
func (h outboxHandlers) listRefused(w http.ResponseWriter, r *http.Request) error {
	limit, err := intParam(r, "limit")
	if err != nil {
		return err
	}
	refusals, err := h.outbox.Refused(r.Context(), limit)
	if err != nil {
		return err
	}
	out := reportapi.OutboxRefusals{Messages: make([]reportapi.OutboxRefusal, len(refusals))}
	for i, refusal := range refusals {
		out.Messages[i] = outboxRefusalOf(refusal)
	}
	return service.Encode(w, http.StatusOK, out)
}

func outboxRefusalOf(r outbox.Refusal) reportapi.OutboxRefusal {
	return reportapi.OutboxRefusal{Message: outboxMessageOf(r.Message), Behind: r.Behind, BehindSince: orZero(r.BehindSince)}
}

// outboxStory handles GET /admin/outbox/messages/{id}/story.
func (h outboxHandlers) outboxStory(w http.ResponseWriter, r *http.Request) error {
	id := pathID(r)
	told, err := h.outbox.Story(r.Context(), id)
	if err != nil {
		return err
	}
	entries, err := h.photos.Entries(r.Context(), id.String())
	if err != nil {
		return err
	}
	entries = append(told.Entries, entries...)
	story.Sort(entries)
	out := reportapi.OutboxStory{TraceID: told.TraceID, Entries: make([]reportapi.StoryEntry, len(entries))}
	if told.Message != nil {
		out.Message = outboxMessageOf(*told.Message)
	}
	for i, e := range entries {
		out.Entries[i] = storyEntryOf(e)
	}
	return service.Encode(w, http.StatusOK, out)
}

func storyEntryOf(e story.Entry) reportapi.StoryEntry {
	return reportapi.StoryEntry{
		At: e.At, Kind: reportapi.StoryEntryKind(e.Kind), Place: e.Place,
		Attempts: orZero(e.Attempts), Class: orZero(e.Class), Reason: orZero(e.Reason), DurationMs: orZero(e.DurationMs),
		Until: orZero(e.Until), DeadLetterID: orZero(e.DeadLetter), ReplayID: orZero(e.Replay),
	}
}

// retryOutbox handles POST /admin/outbox/messages/{id}/retry.
func (h outboxHandlers) retryOutbox(w http.ResponseWriter, r *http.Request) error {
	if err := h.outbox.Retry(r.Context(), caller(r).ID, pathID(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// discardOutbox handles DELETE /admin/outbox/messages/{id}.
func (h outboxHandlers) discardOutbox(w http.ResponseWriter, r *http.Request) error {
	if err := h.outbox.Discard(r.Context(), caller(r).ID, pathID(r), r.URL.Query().Get("reason")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// retryAllOutbox handles POST /admin/outbox/messages/retry.
func (h outboxHandlers) retryAllOutbox(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.BulkRetry](r)
	if err != nil {
		return err
	}
	retried, err := h.outbox.RetryAll(r.Context(), caller(r).ID, string(req.RoutingKey))
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.BulkRetried{Retried: retried})
}

// republishOutbox handles POST /admin/outbox/messages/republish.
func (h outboxHandlers) republishOutbox(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.OutboxRepublish](r)
	if err != nil {
		return err
	}
	done, err := h.outbox.RepublishChosen(r.Context(), caller(r).ID, req.MessageIds, req.Reason)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.OutboxRepublished{Republished: done.Pending, Unpublished: done.Unpublished, Gone: done.Gone})
}

// outboxAudit handles GET /admin/outbox/audit.
func (h outboxHandlers) outboxAudit(w http.ResponseWriter, r *http.Request) error {
	limit, err := intParam(r, "limit")
	if err != nil {
		return err
	}
	entries, err := h.outbox.Audit(r.Context(), limit)
	if err != nil {
		return err
	}
	audit := reportapi.OutboxAudit{Acts: make([]reportapi.OutboxAct, len(entries))}
	for i, e := range entries {
		audit.Acts[i] = outboxActOf(e)
	}
	return service.Encode(w, http.StatusOK, audit)
}

func outboxActOf(e outbox.AuditEntry) reportapi.OutboxAct {
	return reportapi.OutboxAct{
		At: e.At, Actor: e.Actor, Action: reportapi.OutboxActAction(e.Action), MessageID: e.MessageID,
		RoutingKey: reportapi.RoutingKey(e.RoutingKey), Reason: e.Reason,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// orZero returns the value behind p, or the zero value, which the answer leaves
// out.
func orZero[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
