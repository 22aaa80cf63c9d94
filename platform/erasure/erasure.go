// Package erasure removes a person from a database permanently.
//
// Each service erases from its own database what it knows of the person. The
// package promises that a requested erasure comes to its end: it is
// a row, worked on in short transactions that note how far they are, so that
// another replica goes on where one died, and asking again changes nothing. It
// also promises that nothing that was on its way at the time, be it a token, a
// request or a message, brings the person back. For that a keyed hash of the
// person's id is kept for Life. Nothing else names them: no row, no log line and
// no answer.
//
//	running ──(settle)──► step 1 … step n ──► done ──(Life)──► its hash is forgotten
//	                                           │
//	   asked for again: starts over ◄──────────┘
package erasure

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/retention"
)

// Life is how long an erased person is recognised: longer than a token is valid, a
// message is on its way, and an outbox row is kept.
const Life = 30 * 24 * time.Hour

// Someone stands in place of the erased where something must stand, such as
// the actor of an audit or the voter in a message.
const Someone = "erased"

// Self is the actor of an erasure that its person has asked for.
const Self = "self"

const (
	// refreshEvery is how often a replica reads the erased persons, and looks for work.
	refreshEvery = 2 * time.Second
	// settle is how long a new erasure waits before its first step: until all
	// replicas know of it, and earlier requests and statements have ended. Their rows
	// are there then, and nothing more is written.
	settle = 25 * time.Second
	// A transaction works on so many rows, and the next one waits as long as it
	// took.
	rows        = 1000
	workTimeout = 30 * time.Second
)

// A Step removes one kind of trace.
type Step struct {
	Name string // for operators, such as "votes"
	// Pause is how long the step before must be over, so that what began before
	// its end has ended.
	Pause time.Duration
	// Do works on up to limit rows of tx that lie behind cursor, which is empty
	// at first, and returns where to go on, or "" when nothing is left. The
	// cursor must not name anybody.
	Do func(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (next string, removed int64, err error)
}

// An Erasure is what operators see of one: not who it is.
type Erasure struct {
	ID          uuid.UUID
	Actor       string
	RequestedAt time.Time
	DoneAt      *time.Time
	Removed     map[string]int64 // rows, by step
	Left        []string         // the steps that are not done
}

// An Eraser erases from one database.
type Eraser struct {
	pool   *pgxpool.Pool
	keys   *event.Keyring
	macs   []*sync.Pool // of HMACs, by key, the one in use first: a message is hashed for each of its readers
	steps  []Step
	log    zerolog.Logger
	settle time.Duration

	erased atomic.Pointer[map[string]struct{}] // the hashes
}

// New returns an Eraser of the database behind pool. The keyring seals the ids
// of those who are being erased, and hashes them.
func New(pool *pgxpool.Pool, keys *event.Keyring, steps []Step, log zerolog.Logger) *Eraser {
	e := &Eraser{pool: pool, keys: keys, steps: steps, log: log, settle: settle}
	for _, key := range keys.Derive("cityconnect/erasures") {
		e.macs = append(e.macs, &sync.Pool{New: func() any { return hmac.New(sha256.New, key) }})
	}
	e.erased.Store(&map[string]struct{}{})
	return e
}

// Hashes returns what userID would be recognised by, for each key, the one in
// use first.
func (e *Eraser) Hashes(userID string) [][]byte {
	hashes := make([][]byte, len(e.macs))
	for i, macs := range e.macs {
		mac := macs.Get().(hash.Hash)
		mac.Reset()
		mac.Write([]byte(userID))
		hashes[i] = mac.Sum(nil)
		macs.Put(mac)
	}
	return hashes
}

// Erased reports whether userID was erased within Life, as far as this replica
// knows: it reads the list every two seconds. It costs nothing while the list is empty.
func (e *Eraser) Erased(userID string) bool {
	erased := *e.erased.Load()
	if len(erased) == 0 {
		return false
	}
	for _, hash := range e.Hashes(userID) {
		if _, ok := erased[string(hash)]; ok {
			return true
		}
	}
	return false
}

// Request has userID erased, in the name of actor. If that is under way already, it
// returns the progress; if it was done before, it starts over.
func (e *Eraser) Request(ctx context.Context, actor, userID string) (Erasure, error) {
	id := uuid.Must(uuid.NewV7())
	hashes := e.Hashes(userID)
	err := pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		// A row of the same person under an earlier key is replaced by this one.
		_, err := tx.Exec(ctx, `update erasures set user_mac = null where user_mac = any($1)`, hashes[1:])
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			insert into erasures as e (id, actor, user_mac, sealed, due_at) values ($1, $2, $3, $4, now() + $5::interval)
			on conflict (user_mac) do update set
				id = case when e.done_at is null then e.id else excluded.id end,
				actor = case when e.done_at is null then e.actor else excluded.actor end,
				sealed = case when e.done_at is null then e.sealed else excluded.sealed end,
				requested_at = case when e.done_at is null then e.requested_at else now() end,
				due_at = case when e.done_at is null then e.due_at else excluded.due_at end,
				step = case when e.done_at is null then e.step else 0 end,
				cursor = case when e.done_at is null then e.cursor else '' end,
				removed = case when e.done_at is null then e.removed else '{}' end,
				done_at = null
			returning id`, id, actor, hashes[0], e.keys.Seal(id, userID), e.settle).Scan(&id)
	})
	if err != nil {
		return Erasure{}, fmt.Errorf("request erasure: %w", err)
	}
	return e.Get(ctx, id)
}

const selectSQL = `select id, actor, requested_at, done_at, removed, step from erasures`

func (e *Eraser) scan(row pgx.CollectableRow) (Erasure, error) {
	var r Erasure
	var step int
	if err := row.Scan(&r.ID, &r.Actor, &r.RequestedAt, &r.DoneAt, &r.Removed, &step); err != nil {
		return r, err
	}
	r.Left = []string{}
	for _, s := range e.steps[min(step, len(e.steps)):] {
		r.Left = append(r.Left, s.Name)
	}
	return r, nil
}

// Get returns an erasure.
func (e *Eraser) Get(ctx context.Context, id uuid.UUID) (Erasure, error) {
	return pgpool.One(ctx, e.pool, "read erasure", pgx.ErrNoRows, e.scan, selectSQL+` where id = $1`, id)
}

// List returns the latest erasures, newest first.
func (e *Eraser) List(ctx context.Context, limit int) ([]Erasure, error) {
	return pgpool.Collect(ctx, e.pool, "list erasures", e.scan, selectSQL+` order by requested_at desc limit $1`, limit)
}

// Run works on requested erasures until ctx ends, and keeps its list of erased
// persons up to date. All replicas do so: one at a time works on an erasure.
func (e *Eraser) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := e.Refresh(ctx)
		if err == nil {
			err = e.work(ctx)
		}
		if err != nil && ctx.Err() == nil {
			e.log.Warn().Str("error", pgpool.LogText(err)).Msg("erasing a person failed, will retry")
		}
		_ = backoff.Sleep(ctx, refreshEvery) // the loop checks ctx
	}
	return nil
}

// Refresh reads the erased persons. Run does so all the time; the first time is
// before the first request.
func (e *Eraser) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshEvery)
	defer cancel()
	hashes, err := pgpool.Collect(ctx, e.pool, "read who was erased", pgx.RowTo[[]byte], `select user_mac from erasures where user_mac is not null`)
	if err != nil {
		return err
	}
	erased := make(map[string]struct{}, len(hashes))
	for _, hash := range hashes {
		erased[string(hash)] = struct{}{}
	}
	e.erased.Store(&erased)
	return nil
}

// work makes a step of every erasure that can go on, and comes back to Run,
// which has to keep up.
func (e *Eraser) work(ctx context.Context) error {
	for until := time.Now().Add(refreshEvery); time.Now().Before(until); {
		began := time.Now()
		worked, err := e.Step(ctx)
		if err != nil || !worked {
			return err
		}
		if err := backoff.Sleep(ctx, time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// Step does the next piece of an erasure in a transaction. It reports whether
// there was one to do.
func (e *Eraser) Step(ctx context.Context) (worked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		var id uuid.UUID
		var sealed, cursor string
		var step int
		var removed map[string]int64
		// Skipped is what another replica works on; by chance, so that one that
		// fails does not hold up the others.
		err := tx.QueryRow(ctx, `
			select id, sealed, step, cursor, removed from erasures
			where done_at is null and due_at <= now()
			order by random() limit 1 for update skip locked`).Scan(&id, &sealed, &step, &cursor, &removed)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("take an erasure: %w", err)
		}
		worked = true
		if step >= len(e.steps) {
			_, err := tx.Exec(ctx, `update erasures set done_at = now(), sealed = null, cursor = '' where id = $1`, id)
			e.log.Info().Stringer("erasure", id).Msg("a person was erased")
			return err
		}
		userID, err := e.keys.Open(id, sealed)
		if err != nil {
			return fmt.Errorf("erasure %s: the key of its id is missing: %w", id, err)
		}
		next, n, err := e.steps[step].Do(ctx, tx, userID, cursor, rows)
		if err != nil {
			return fmt.Errorf("erase %s: %w", e.steps[step].Name, err)
		}
		removed[e.steps[step].Name] += n
		var pause time.Duration
		if next == "" {
			if step++; step < len(e.steps) {
				pause = e.steps[step].Pause
			}
		}
		_, err = tx.Exec(ctx, `
			update erasures set step = $2, cursor = $3, removed = $4, due_at = now() + $5::interval where id = $1`,
			id, step, next, removed, pause)
		return err
	})
	return worked, err
}

// Tasks returns what retention has to do here: to forget the hashes after Life,
// and the erasures themselves, which are an audit, after keep.
func Tasks(keep retention.Period) []retention.Task {
	return []retention.Task{
		retention.Removal("erasure_hashes", retention.Period(Life), `
			update erasures set user_mac = null where id in (
				select id from erasures where user_mac is not null and done_at < now() - $1::interval limit $2)`),
		retention.Removal("erasures", keep, `
			delete from erasures where id in (
				select id from erasures where user_mac is null and done_at < now() - $1::interval limit $2)`),
	}
}

// Finish works until the erasure is done, here or at a replica of the service, and
// passes its progress to tell.
func (e *Eraser) Finish(ctx context.Context, id uuid.UUID, tell func(Erasure)) error {
	for {
		worked, err := e.Step(ctx)
		if err != nil {
			return err
		}
		state, err := e.Get(ctx, id)
		if err != nil {
			return err
		}
		tell(state)
		if state.DoneAt != nil {
			return nil
		}
		if !worked {
			if err := backoff.Sleep(ctx, refreshEvery); err != nil {
				return err
			}
		}
	}
}
