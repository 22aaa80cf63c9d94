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
		"outboxStats":               {Handler: answered(h.outboxStats), Timeout: service.DefaultTimeout},
		"outboxHistory":             operators.History(h.History),
		"outboxMessageStory":        {Handler: answered(h.outboxStory), Timeout: service.DefaultTimeout},
		"listOutboxMessages":        {Handler: h.listOutbox, Timeout: service.DefaultTimeout},
		"listRefusedOutboxMessages": {Handler: answered(h.listRefused), Timeout: service.DefaultTimeout},
		"retryOutboxMessage":        {Handler: done(h.retryOutbox), Timeout: service.DefaultTimeout},
		"retryOutboxMessages":       {Handler: answeredTo(h.retryAllOutbox), Timeout: service.DefaultTimeout},
		"republishOutboxMessages":   {Handler: answeredTo(h.republishOutbox), Timeout: service.DefaultTimeout},
		"discardOutboxMessage":      {Handler: done(h.discardOutbox), Timeout: service.DefaultTimeout},
		"outboxAudit":               {Handler: answered(h.outboxAudit), Timeout: service.DefaultTimeout},
	}
}

// outboxStats handles GET /admin/outbox/stats.
func (h Outbox) outboxStats(r *http.Request) (reportapi.OutboxStats, error) {
	stats, err := h.Store.Stats(r.Context())
	if err != nil {
		return reportapi.OutboxStats{}, err
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
	return out, nil
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
func (h Outbox) listRefused(r *http.Request) (reportapi.OutboxRefusals, error) {
	refusals, err := h.Store.Refused(r.Context(), intParam(r, "limit"))
	return reportapi.OutboxRefusals{Messages: service.Each(refusals, outboxRefusalOf)}, err
}

func outboxRefusalOf(r outbox.Refusal) reportapi.OutboxRefusal {
	return reportapi.OutboxRefusal{Message: outboxMessageOf(r.Message), Behind: r.Behind, BehindSince: service.OrZero(r.BehindSince)}
}

// outboxStory handles GET /admin/outbox/messages/{id}/story.
func (h Outbox) outboxStory(r *http.Request) (reportapi.OutboxStory, error) {
	id := pathID(r)
	told, err := h.Store.Story(r.Context(), id)
	if err != nil {
		return reportapi.OutboxStory{}, err
	}
	entries, err := h.Story.Entries(r.Context(), id.String())
	if err != nil {
		return reportapi.OutboxStory{}, err
	}
	entries = append(told.Entries, entries...)
	story.Sort(entries)
	out := reportapi.OutboxStory{TraceID: told.TraceID, Entries: service.Each(entries, storyEntryOf)}
	if told.Message != nil {
		out.Message = outboxMessageOf(*told.Message)
	}
	return out, nil
}

func storyEntryOf(e story.Entry) reportapi.StoryEntry {
	return reportapi.StoryEntry{
		At: e.At, Kind: reportapi.StoryEntryKind(e.Kind), Place: e.Place,
		Attempts: service.OrZero(e.Attempts), Class: service.OrZero(e.Class), Reason: service.OrZero(e.Reason), DurationMs: service.OrZero(e.DurationMs),
		Until: service.OrZero(e.Until), DeadLetterID: service.OrZero(e.DeadLetter), ReplayID: service.OrZero(e.Replay),
	}
}

// retryOutbox handles POST /admin/outbox/messages/{id}/retry.
func (h Outbox) retryOutbox(r *http.Request) error {
	return h.Store.Retry(r.Context(), user(r).ID, pathID(r))
}

// discardOutbox handles DELETE /admin/outbox/messages/{id}.
func (h Outbox) discardOutbox(r *http.Request) error {
	return h.Store.Discard(r.Context(), user(r).ID, pathID(r), r.URL.Query().Get("reason"))
}

// retryAllOutbox handles POST /admin/outbox/messages/retry.
func (h Outbox) retryAllOutbox(r *http.Request, req reportapi.BulkRetry) (reportapi.BulkRetried, error) {
	retried, err := h.Store.RetryAll(r.Context(), user(r).ID, string(req.RoutingKey))
	return reportapi.BulkRetried{Retried: retried}, err
}

// republishOutbox handles POST /admin/outbox/messages/republish.
func (h Outbox) republishOutbox(r *http.Request, req reportapi.OutboxRepublish) (reportapi.OutboxRepublished, error) {
	done, err := h.Store.RepublishChosen(r.Context(), user(r).ID, req.MessageIds, req.Reason)
	return reportapi.OutboxRepublished{Republished: done.Pending, Unpublished: done.Unpublished, Gone: done.Gone}, err
}

// outboxAudit handles GET /admin/outbox/audit.
func (h Outbox) outboxAudit(r *http.Request) (reportapi.OutboxAudit, error) {
	entries, err := h.Store.Audit(r.Context(), intParam(r, "limit"))
	return reportapi.OutboxAudit{Acts: service.Each(entries, outboxActOf)}, err
}

func outboxActOf(e outbox.AuditEntry) reportapi.OutboxAct {
	return reportapi.OutboxAct{
		At: e.At, Actor: e.Actor, Action: reportapi.OutboxActAction(e.Action), MessageID: e.MessageID,
		RoutingKey: reportapi.RoutingKey(e.RoutingKey), Reason: e.Reason,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
