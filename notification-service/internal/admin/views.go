package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// letterOf returns a dead letter as operators see it: persons who are named in it are
// masked, and the recipient stays sealed.
func letterOf(e deadletter.Entry) notificationapi.DeadLetter {
	return notificationapi.DeadLetter{
		ID: e.ID, Queue: e.Queue, MessageID: e.MessageID, Type: e.Type,
		ErrorClass: e.Class, Error: e.Error, ErrorGroup: e.Group, Deaths: int32(e.Deaths),
		FirstFailedAt: e.FirstFailedAt, FailedAt: e.FailedAt, ArchivedAt: e.ArchivedAt,
		State: notificationapi.DeadLetterState(e.State), ClosedAt: service.OrZero(e.ClosedAt), CloseReason: e.CloseReason,
		ParentID: service.OrZero(e.ParentID), ReplayID: service.OrZero(e.ReplayID),
		Properties: notificationapi.DeadLetterProperties{
			ContentType: e.Properties.ContentType, AppID: e.Properties.AppID, Timestamp: e.Properties.Timestamp,
		},
		Headers: deadletter.MaskHeaders(e.Headers),
		Body:    deadletter.MaskBody(e.Body),
		Note:    noteOf(service.OrZero(e.Note)),
	}
}

func attemptOf(a deadletter.Attempt) notificationapi.DeadLetterAttempt {
	return notificationapi.DeadLetterAttempt{
		FailedAt: a.FailedAt, Retries: int32(a.Retries), RetryReason: a.RetryReason,
		ErrorClass: a.Class, Error: a.Error, ReplayID: service.OrZero(a.ReplayID),
	}
}

func statOf(s deadletter.Stat) notificationapi.DeadLetterStat {
	return notificationapi.DeadLetterStat{
		Queue: s.Queue, Open: int64(s.Open), Replaying: int64(s.Replaying),
		Resolved: int64(s.Resolved), Discarded: int64(s.Discarded), OldestOpenAt: service.OrZero(s.OldestAt),
	}
}

func groupOf(g deadletter.Group) notificationapi.DeadLetterGroup {
	return notificationapi.DeadLetterGroup{
		Queue: g.Queue, ErrorClass: g.Class, ErrorGroup: g.Group,
		Open: int64(g.Open), Oldest: g.Oldest, Newest: g.Newest, SampleID: g.Sample,
		Note: noteOf(service.OrZero(g.Note)),
	}
}

func noteOf(n deadletter.Note) notificationapi.DeadLetterNote {
	return notificationapi.DeadLetterNote{Text: n.Text, Author: n.Author, WrittenAt: n.WrittenAt, Version: n.Version}
}

func changeOf(c deadletter.Change) notificationapi.DeadLetterChange {
	return notificationapi.DeadLetterChange{Field: c.Field, Before: c.Before, After: c.After}
}

func auditOf(e audit.Entry) notificationapi.AuditEntry {
	return notificationapi.AuditEntry{
		ID: e.ID, At: e.At, Actor: e.Actor, Action: string(e.Action), DeadLetterID: service.OrZero(e.DeadLetter),
		ReplayID: service.OrZero(e.Replay), Queue: service.OrZero(e.Queue), Detail: e.Detail,
	}
}

// selectionOf reads which dead letters an operator has chosen.
func selectionOf(s notificationapi.DeadLetterSelection) deadletter.Selection {
	selection := deadletter.Selection{
		IDs: s.Ids, Queue: s.Queue, Class: string(s.ErrorClass), Group: s.ErrorGroup, Type: s.Type, MessageID: s.MessageID,
	}
	if s.ReplayID != uuid.Nil {
		selection.Replay = s.ReplayID.String()
	}
	return selection
}

func replayOf(r deadletter.Replay) notificationapi.Replay {
	selection, err := json.Marshal(r.Selection)
	if err != nil {
		panic(fmt.Sprintf("admin: encode selection: %v", err)) // it is made of strings and numbers
	}
	return notificationapi.Replay{
		ID: r.ID, CreatedAt: r.CreatedAt, Selection: selection, State: notificationapi.ReplayState(r.State),
		Total: int64(r.Total), RatePerS: int32(r.PerSecond), Canary: int32(r.Canary),
		Reason: r.Reason, EndedAt: service.OrZero(r.EndedAt), Actor: r.Actor, Queues: append([]string{}, r.Queues...), Causes: append([]string{}, r.Causes...),
		Pending: int64(r.Pending), InFlight: int64(r.InFlight), Resolved: int64(r.Resolved), Failed: int64(r.Failed),
		LastSentAt: service.OrZero(r.LastSent),
	}
}

func poolOf(p consumer.Pool) notificationapi.WorkerPool {
	types := service.Each(p.Types, func(key event.Key) string { return string(key) })
	return notificationapi.WorkerPool{
		Queue: p.Queue, Type: strings.Join(types, ", "), Elsewhere: p.Elsewhere,
		Concurrency: int32(p.Concurrency), Prefetch: int32(p.Prefetch), Paused: p.Paused,
		Depth: p.Depth, Consumers: p.Consumers, Workers: int32(p.Workers), Stalled: int32(p.Stalled),
		RatePerS: p.PerSecond, ErrorRate: p.ErrorRate,
		HandlerP50Ms: milliseconds(p.HandlerP50), HandlerP99Ms: milliseconds(p.HandlerP99),
	}
}

func waitingQueueOf(q consumer.WaitingQueue) notificationapi.WaitingQueue {
	return notificationapi.WaitingQueue{Queue: q.Name, DelayS: q.Delay.Seconds(), Of: q.Of, Depth: q.Depth}
}

func copiesOf(c topology.Copies) notificationapi.QueueCopies {
	return notificationapi.QueueCopies{Leader: c.Leader, Members: c.Members, Online: c.Online}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func nodeOf(n topology.Node) notificationapi.BrokerNode {
	return notificationapi.BrokerNode{
		Name: n.Name, Running: n.Running, MemoryUsed: n.MemoryUsed, MemoryLimit: n.MemoryLimit, MemoryAlarm: n.MemoryAlarm,
		DiskFree: n.DiskFree, DiskLimit: n.DiskLimit, DiskAlarm: n.DiskAlarm,
	}
}

func findingOf(f topology.Finding) notificationapi.Finding {
	return notificationapi.Finding{What: f.What, Remedy: f.Remedy}
}
