package api

import (
	"maps"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

func outboxStatsOf(s outbox.Stats, state relay.State) OutboxStats {
	out := OutboxStats{
		Pending: s.Pending, Delayed: s.Delayed, Failed: s.Failed, OldestPendingSeconds: s.OldestAge.Seconds(),
		Replicas: s.Members, Shards: make([]OutboxShard, len(s.Shards)), Relay: relayStateOf(state),
	}
	for i, shard := range s.Shards {
		out.Shards[i] = OutboxShard{
			Shard: int32(shard.Shard), Pending: shard.Pending, Delayed: shard.Delayed, Failed: shard.Failed,
			OldestPendingSeconds: shard.OldestAge.Seconds(),
			Owner:                orZero(shard.Owner), Epoch: shard.Epoch, LeaseUntil: orZero(shard.LeaseUntil),
		}
	}
	return out
}

func relayStateOf(s relay.State) RelayState {
	out := RelayState{
		ID: s.ID, Connected: s.Connected, Since: s.Since, LastError: s.LastError, Blocked: s.Blocked,
		Shards: int32(s.Shards), LeaseValid: s.LeaseValid, InFlight: int32(s.InFlight), Window: int32(s.Window),
		HeldBack: make(map[string]string), LastPublish: s.LastPublish,
		PublishedPerS: s.PublishedPerSecond, ConfirmP50Ms: milliseconds(s.ConfirmP50), ConfirmP99Ms: milliseconds(s.ConfirmP99),
		Returned: s.Returned, Nacked: s.Nacked, Connects: s.Connects, BlockedSeconds: s.BlockedFor.Seconds(),
	}
	maps.Copy(out.HeldBack, s.OpenCircuits)
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func outboxPageOf(p outbox.Page) OutboxPage {
	out := OutboxPage{Messages: make([]OutboxMessage, len(p.Messages)), NextCursor: p.Next}
	for i, m := range p.Messages {
		out.Messages[i] = OutboxMessage{
			ID: m.ID, RoutingKey: RoutingKey(m.RoutingKey), Status: OutboxStatus(m.Status),
			ReportID: m.ReportID, ReportVersion: m.ReportVersion, CreatedAt: m.CreatedAt,
			PublishedAt: orZero(m.PublishedAt), NextAttemptAt: orZero(m.NextAttemptAt),
			RetryCount: m.RetryCount, LastError: orZero(m.LastError),
		}
	}
	return out
}

func outboxAuditOf(entries []outbox.AuditEntry) OutboxAudit {
	out := OutboxAudit{Acts: make([]OutboxAct, len(entries))}
	for i, e := range entries {
		out.Acts[i] = OutboxAct{
			At: e.At, Actor: e.Actor, Action: OutboxActAction(e.Action), MessageID: e.MessageID,
			RoutingKey: RoutingKey(e.RoutingKey), Reason: e.Reason,
		}
	}
	return out
}

// orZero returns what p points to, or the zero value, which the answer leaves
// out.
func orZero[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
