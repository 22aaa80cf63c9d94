// Package admin is the operators' side of notification-service over HTTP:
// dead letters, their replays, messages that wait until a time, and the worker
// pools.
//
// Who may use it, and what a request may contain, is decided before by the
// OpenAPI document. The package promises that no answer names a reporter or
// a voter.
package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/topology"
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
	Edit(ctx context.Context, actor string, id int64, e deadletter.Edit) (int64, error)
	AuditLog(ctx context.Context, before int64, limit int) ([]audit.Entry, error)
}

// Delayed are the messages that wait until a time.
type Delayed interface {
	Entries(ctx context.Context, s delay.Selection, after *delay.Position, limit int) ([]delay.Entry, error)
	Release(ctx context.Context, actor, queue, messageID string) error
	Cancel(ctx context.Context, actor, queue, messageID, reason string) error
}

// Pools are the worker pools.
type Pools interface {
	Pools() []consumer.Pool
	Waiting() []consumer.WaitingQueue
	ChangePool(ctx context.Context, actor, queue string, change consumer.PoolChange) (consumer.Pool, error)
}

// A Checker compares the broker with what it should be.
type Checker interface {
	Findings() []topology.Finding
	Copies(queue string) *topology.Copies
}

// An API answers the operators' operations.
type API struct {
	store   Store
	delayed Delayed
	pools   Pools
	checker Checker
}

// New returns an API on dead letters, delayed messages and worker pools.
func New(store Store, delayed Delayed, pools Pools, checker Checker) *API {
	return &API{store, delayed, pools, checker}
}

// Handlers has a handler for each of the operators' operations.
func (a *API) Handlers() openapi.Handlers {
	handlers := openapi.Handlers{
		"deadLetterStats":    a.stats,
		"deadLetterGroups":   a.groups,
		"listDeadLetters":    a.list,
		"readDeadLetter":     a.read,
		"exportDeadLetters":  a.export,
		"replayDeadLetter":   a.replayOne,
		"editDeadLetter":     a.edit,
		"discardDeadLetter":  a.discardOne,
		"discardDeadLetters": a.discardMany,
		"createReplay":       a.createReplay,
		"listReplays":        a.replays,
		"readReplay":         a.readReplay,
		"setReplayState":     a.setReplayState,
		"listAudit":          a.audit,
		"listWorkerPools":    a.listPools,
		"changeWorkerPool":   a.changePool,

		"listDelayedMessages":   a.listDelayed,
		"releaseDelayedMessage": a.releaseDelayed,
		"cancelDelayedMessage":  a.cancelDelayed,
	}
	for name, h := range handlers {
		if name != "exportDeadLetters" { // which takes as long as its reader
			handlers[name] = service.Timeout(service.DefaultTimeout, h)
		}
	}
	return handlers
}

// actor returns who asks. The document lets only operators pass.
func actor(r *http.Request) string {
	p, ok := auth.From(r.Context())
	if !ok {
		panic("admin: a request reached its handler without a principal")
	}
	return p.ID
}

// selection reads the filters of a query.
func selection(r *http.Request) (deadletter.Selection, error) {
	q := r.URL.Query()
	s := deadletter.Selection{
		Text: q.Get("text"), Queue: q.Get("queue"), Class: q.Get("error_class"), Group: q.Get("error_group"), Type: q.Get("type"),
		State: deadletter.State(q.Get("state")), MessageID: q.Get("message_id"), Replay: q.Get("replay_id"),
	}
	var err error
	if s.From, s.To, err = period(q); err != nil {
		return deadletter.Selection{}, err
	}
	return s, nil
}

// period reads the times from and to of a query; the zero time is none.
func period(q url.Values) (from, to time.Time, err error) {
	for name, t := range map[string]*time.Time{"from": &from, "to": &to} {
		if text := q.Get(name); text != "" {
			if *t, err = time.Parse(time.RFC3339, text); err != nil {
				return from, to, fmt.Errorf("time that the document let pass: %w", err)
			}
		}
	}
	return from, to, nil
}

// number reads a number that the document has checked; missing is otherwise.
func number(s string, otherwise int64) (int64, error) {
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("number that the document let pass: %w", err)
	}
	return n, nil
}

// page reads the limit and the cursor of a query.
func page(r *http.Request) (limit int, before int64, err error) {
	q := r.URL.Query()
	n, err := number(q.Get("limit"), 50)
	if err != nil {
		return 0, 0, err
	}
	before, err = number(q.Get("cursor"), 0)
	return int(n), before, err
}
