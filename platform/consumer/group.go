package consumer

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// A Group is what consumes a set of queues that nobody else reads. Each group
// gets every message that its queues are bound for; it has its own retries,
// dead letters and worker pools, and what fails in it concerns no other group.
type Group struct {
	Name   string           // lower case, such as "webhooks"; names the group's policy at the broker
	Queues []topology.Queue // the most urgent one first
	// Effect is what the messages bring about. A group without one is another
	// process's: this one declares its queues where they are wanted, shows them, and
	// lets operators change their pools, but does not read them.
	Effect Effect
	// Since returns since when messages concern the group, such as the time when there
	// was first somebody to send them to: none waits for an earlier one. It is called
	// seldom. Nil is always.
	Since func(ctx context.Context) (time.Time, error)
	// Bulk says that nobody waits for the effect by the millisecond: its workers
	// take ten times as many messages as configured, and wait for them a little.
	// Large transactions leave the database to those who do wait.
	Bulk bool
}

// How much more a worker of a bulk group takes, and its shortest wait for that.
const (
	bulkFactor = 10
	bulkWait   = 50 * time.Millisecond
)

// config returns what holds for the workers of g where cfg is configured.
func (g Group) config(cfg Config) Config {
	if g.Bulk {
		cfg.Prefetch = min(bulkFactor*cfg.Prefetch, maxPrefetch)
		cfg.BatchSize = min(bulkFactor*cfg.BatchSize, maxPrefetch)
		cfg.BatchWait = max(bulkWait, cfg.BatchWait)
	}
	return cfg
}

// A Message is a delivery that was understood: its body keeps the contract.
type Message struct {
	ID      string // of the message, the same however often it is delivered
	Event   event.Message
	Body    []byte
	Headers amqp.Table
	value   any // what Effect.Read returned
}

// An Effect is what the messages of a group bring about in its database.
// failure.Classify sorts the errors. InTx makes one of a function, Typed one of a
// TypedEffect.
type Effect interface {
	// Read checks a message before it enters a batch. Its value is kept for Typed.
	// Its error is the end of the message, which becomes a dead letter: the same
	// bytes will never be understood.
	Read(m Message) (value any, err error)
	// Apply gives each message of a batch from queue its effect in one
	// transaction, unless it had it before, and returns how many had. The
	// messages have distinct ids. Note does in that transaction what belongs
	// to the message besides its effect.
	Apply(ctx context.Context, queue string, batch []Message) (seen int, err error)
}

// An EachEffect can also give the messages of a batch their effects one by one, for less
// than a transaction each.
type EachEffect interface {
	Effect
	// ApplyEach is called for a batch that Apply has failed for. It returns which of
	// the messages have their effect now, and none with an error. It may leave
	// others for any reason: each of these is given to Apply alone. While it is at work
	// it calls failed for a message, by its place, that fails whatever becomes of the
	// others; it may do so before they are committed. Each helps with all of it.
	ApplyEach(ctx context.Context, queue string, batch []Message, failed func(i int, err error)) (applied []bool, err error)
}

// A Parsed is a message that a TypedEffect has read.
type Parsed[T any] struct {
	ID    string // of the message
	Value T
}

// A TypedEffect is an Effect that reads a T from each message before a batch has it.
// Its methods promise what those of an Effect do.
type TypedEffect[T any] interface {
	Read(m Message) (T, error)
	Apply(ctx context.Context, queue string, batch []Parsed[T]) (seen int, err error)
}

// Typed returns e as the Effect of a group, or as its EachEffect if it has ApplyEach for
// what it parses.
func Typed[T any](e TypedEffect[T]) Effect {
	if each, ok := e.(typedEach[T]); ok {
		return typedEachEffect[T]{typed[T]{e}, each}
	}
	return typed[T]{e}
}

type typed[T any] struct{ effect TypedEffect[T] }

func (e typed[T]) Read(m Message) (any, error) { return e.effect.Read(m) }

func (e typed[T]) Apply(ctx context.Context, queue string, batch []Message) (seen int, err error) {
	return e.effect.Apply(ctx, queue, parsed[T](batch))
}

func parsed[T any](batch []Message) []Parsed[T] {
	all := make([]Parsed[T], len(batch))
	for i, m := range batch {
		all[i] = Parsed[T]{ID: m.ID, Value: m.value.(T)}
	}
	return all
}

// A typedEach is to an EachEffect what a TypedEffect is to an Effect.
type typedEach[T any] interface {
	ApplyEach(ctx context.Context, queue string, batch []Parsed[T], failed func(i int, err error)) (applied []bool, err error)
}

type typedEachEffect[T any] struct {
	typed[T]
	each typedEach[T]
}

func (e typedEachEffect[T]) ApplyEach(ctx context.Context, queue string, batch []Message, failed func(i int, err error)) (applied []bool, err error) {
	return e.each.ApplyEach(ctx, queue, parsed[T](batch), failed)
}

// InTx returns the Effect that apply describes. apply is called in a
// transaction on pool with those messages of a batch that have not had their
// effect yet, in the order of their reports' versions, and writes by tx alone:
// if it returns an error, or the commit fails, nothing has happened. A batch
// that fails is tried again in parts, down to single messages, so that each
// fails for its own reason.
func InTx(pool *pgxpool.Pool, apply func(ctx context.Context, tx pgx.Tx, messages []Message) error) Effect {
	return inTx{pool, apply}
}

type inTx struct {
	pool  *pgxpool.Pool
	apply func(ctx context.Context, tx pgx.Tx, messages []Message) error
}

func (inTx) Read(Message) (any, error) { return nil, nil }

func (e inTx) Apply(ctx context.Context, queue string, batch []Message) (seen int, err error) {
	err = pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		fresh, err := Note(ctx, tx, queue, batch)
		if seen = len(batch) - len(fresh); err != nil || len(fresh) == 0 {
			return err
		}
		return e.apply(ctx, tx, fresh)
	})
	return seen, err
}

// NoteSQL begins a statement that does what Note does, for the queue $1 and the ids $2.
// The rows of fresh are the new ones.
//
// It takes its locks in the same order each time: ids are sorted. A message that
// another transaction is handling makes this one wait for the end of the other.
const NoteSQL = `
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id) order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
)`

// Note records in the transaction of their effect that the messages of batch,
// which came from queue, have it. It also resolves the dead letters that they
// were, and forgets their starts. It returns those messages that are new; the
// others had their effect before, and the commit waits until a standby has it.
func Note(ctx context.Context, tx pgx.Tx, queue string, batch []Message) (fresh []Message, err error) {
	ids := make([]string, len(batch))
	for i, m := range batch {
		ids[i] = m.ID
	}
	isNew := make(map[string]bool, len(batch))
	var id string
	err = pgpool.ForEach(ctx, tx, "note messages", []any{&id}, func() error { isNew[id] = true; return nil }, NoteSQL+`select message_id from fresh`, queue, ids)
	if err != nil {
		return nil, err
	}
	for _, m := range batch {
		if isNew[m.ID] {
			fresh = append(fresh, m)
		}
	}
	if len(fresh) == 0 { // nothing was written, and messages seen before are acknowledged next
		return nil, pgpool.Barrier(ctx, tx)
	}
	return fresh, nil
}
