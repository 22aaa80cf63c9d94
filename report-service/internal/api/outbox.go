package api

import (
	"context"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/openapi"
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

// An Outbox is where messages wait until they are published, with what operators do to it.
type Outbox struct {
	Store   *outbox.Store
	Relay   Relay
	Story   *story.Store // of messages that groups handle in this database
	History func(ctx context.Context, span time.Duration) (history.History, error)
}

// Operations are those on the outbox.
func (h Outbox) Operations() openapi.Operations {
	return openapi.Operations{
		"outboxStats":               {Handler: h.outboxStats, Timeout: service.DefaultTimeout},
		"outboxHistory":             operators.History(h.History),
		"outboxMessageStory":        {Handler: h.outboxStory, Timeout: service.DefaultTimeout},
		"listOutboxMessages":        {Handler: h.listOutbox, Timeout: service.DefaultTimeout},
		"listRefusedOutboxMessages": {Handler: h.listRefused, Timeout: service.DefaultTimeout},
		"retryOutboxMessage":        {Handler: h.retryOutbox, Timeout: service.DefaultTimeout},
		"retryOutboxMessages":       {Handler: service.Decoded(h.retryAllOutbox), Timeout: service.DefaultTimeout},
		"republishOutboxMessages":   {Handler: service.Decoded(h.republishOutbox), Timeout: service.DefaultTimeout},
		"discardOutboxMessage":      {Handler: h.discardOutbox, Timeout: service.DefaultTimeout},
		"outboxAudit":               {Handler: h.outboxAudit, Timeout: service.DefaultTimeout},
	}
}

// outboxStats handles GET /admin/outbox/stats.
func (h Outbox) outboxStats(w http.ResponseWriter, r *http.Request) error {
	stats, err := h.Store.Stats(r.Context())
	if err != nil {
		return err
	}
	state := h.Relay.State()
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
			Owner:                service.OrZero(shard.Owner), Epoch: shard.Epoch, LeaseUntil: service.OrZero(shard.LeaseUntil),
		}
	}
	return service.Encode(w, http.StatusOK, out)
}

// listOutbox handles GET /admin/outbox/messages.
func (h Outbox) listOutbox(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	filter := outbox.Filter{
		Status: outbox.Status(query.Get("status")), RoutingKey: query.Get("routing_key"), Cursor: query.Get("cursor"),
		TraceID: query.Get("trace_id"), Limit: intParam(r, "limit"), ReportID: openapi.QueryID(r, "report_id"), ID: openapi.QueryID(r, "message_id"),
	}
	page, err := h.Store.List(r.Context(), filter)
	if err != nil {
		return err
	}
	if page.Next != "" {
		service.NextLink(w, r, page.Next)
	}
	return service.Encode(w, http.StatusOK, reportapi.OutboxPage{Messages: service.Each(page.Messages, outboxMessageOf), NextCursor: page.Next})
}

func outboxMessageOf(m outbox.Message) reportapi.OutboxMessage {
	return reportapi.OutboxMessage{
		ID: m.ID, RoutingKey: reportapi.RoutingKey(m.RoutingKey), Status: reportapi.OutboxStatus(m.Status),
		ReportID: m.ReportID, ReportVersion: m.ReportVersion, CreatedAt: m.CreatedAt,
		PublishedAt: service.OrZero(m.PublishedAt), NextAttemptAt: service.OrZero(m.NextAttemptAt),
		RetryCount: m.RetryCount, LastError: service.OrZero(m.LastError),
	}
}

// listRefused handles GET /admin/outbox/refused.
func (h Outbox) listRefused(w http.ResponseWriter, r *http.Request) error {
	refusals, err := h.Store.Refused(r.Context(), intParam(r, "limit"))
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.OutboxRefusals{Messages: service.Each(refusals, outboxRefusalOf)})
}

func outboxRefusalOf(r outbox.Refusal) reportapi.OutboxRefusal {
	return reportapi.OutboxRefusal{Message: outboxMessageOf(r.Message), Behind: r.Behind, BehindSince: service.OrZero(r.BehindSince)}
}

// outboxStory handles GET /admin/outbox/messages/{id}/story.
func (h Outbox) outboxStory(w http.ResponseWriter, r *http.Request) error {
	id := pathID(r)
	told, err := h.Store.Story(r.Context(), id)
	if err != nil {
		return err
	}
	entries, err := h.Story.Entries(r.Context(), id.String())
	if err != nil {
		return err
	}
	entries = append(told.Entries, entries...)
	story.Sort(entries)
	out := reportapi.OutboxStory{TraceID: told.TraceID, Entries: service.Each(entries, storyEntryOf)}
	if told.Message != nil {
		out.Message = outboxMessageOf(*told.Message)
	}
	return service.Encode(w, http.StatusOK, out)
}

func storyEntryOf(e story.Entry) reportapi.StoryEntry {
	return reportapi.StoryEntry{
		At: e.At, Kind: reportapi.StoryEntryKind(e.Kind), Place: e.Place,
		Attempts: service.OrZero(e.Attempts), Class: service.OrZero(e.Class), Reason: service.OrZero(e.Reason), DurationMs: service.OrZero(e.DurationMs),
		Until: service.OrZero(e.Until), DeadLetterID: service.OrZero(e.DeadLetter), ReplayID: service.OrZero(e.Replay),
	}
}

// retryOutbox handles POST /admin/outbox/messages/{id}/retry.
func (h Outbox) retryOutbox(w http.ResponseWriter, r *http.Request) error {
	if err := h.Store.Retry(r.Context(), user(r).ID, pathID(r)); err != nil {
		return err
	}
	return service.NoContent(w)
}

// discardOutbox handles DELETE /admin/outbox/messages/{id}.
func (h Outbox) discardOutbox(w http.ResponseWriter, r *http.Request) error {
	if err := h.Store.Discard(r.Context(), user(r).ID, pathID(r), r.URL.Query().Get("reason")); err != nil {
		return err
	}
	return service.NoContent(w)
}

// retryAllOutbox handles POST /admin/outbox/messages/retry.
func (h Outbox) retryAllOutbox(w http.ResponseWriter, r *http.Request, req reportapi.BulkRetry) error {
	retried, err := h.Store.RetryAll(r.Context(), user(r).ID, string(req.RoutingKey))
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.BulkRetried{Retried: retried})
}

// republishOutbox handles POST /admin/outbox/messages/republish.
func (h Outbox) republishOutbox(w http.ResponseWriter, r *http.Request, req reportapi.OutboxRepublish) error {
	done, err := h.Store.RepublishChosen(r.Context(), user(r).ID, req.MessageIds, req.Reason)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.OutboxRepublished{Republished: done.Pending, Unpublished: done.Unpublished, Gone: done.Gone})
}

// outboxAudit handles GET /admin/outbox/audit.
func (h Outbox) outboxAudit(w http.ResponseWriter, r *http.Request) error {
	entries, err := h.Store.Audit(r.Context(), intParam(r, "limit"))
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.OutboxAudit{Acts: service.Each(entries, outboxActOf)})
}

func outboxActOf(e outbox.AuditEntry) reportapi.OutboxAct {
	return reportapi.OutboxAct{
		At: e.At, Actor: e.Actor, Action: reportapi.OutboxActAction(e.Action), MessageID: e.MessageID,
		RoutingKey: reportapi.RoutingKey(e.RoutingKey), Reason: e.Reason,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
