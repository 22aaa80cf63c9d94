package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// maxBatch bounds how many changes share a commit, and with it how long
	// the first of them waits for the last.
	maxBatch = 64
	// maxCommits is how many batches are written at a time. It is one as long
	// as the changes that gather during a commit fit into the next batch: two
	// halves cost the database more than a whole.
	maxCommits = 4
	// slowCommit is how long no batch may begin or end before another one is
	// written beside those under way: one slow commit does not hold up others.
	slowCommit = 20 * time.Millisecond
	// WorkTimeout bounds the wait for a connection, and each transaction. It is
	// far above what either takes, and below the time after which clients give
	// up.
	WorkTimeout = 10 * time.Second
)

// A change is what one request does to the database, in two steps, so that a
// transaction costs two round trips at most: BEGIN travels with the first
// step, and COMMIT with the second. A report's row is locked for one of them.
//
// A change may be made several times until it is committed, each time from its
// first step.
type change interface {
	// scope says what no other change may touch in the same transaction.
	scope() scope
	// read queues the locks, and the queries on which the change depends.
	read(r *readBatch)
	// write decides with the results of read, and adds the rows. A change that returns
	// an error must not have added any.
	write(w *writeBatch) error
}

// A scope is what a change needs exclusively.
type scope struct {
	subject uuid.UUID // the report, or another subject of the change; zero for none
	voter   string    // empty if the change needs the whole subject
}

// A request is a change and the caller that waits for its outcome.
//
//	  do
//	   │
//	   ▼        the caller leaves, or its deadline has passed
//	waiting ───────────────────────► withdrawn: nothing is written
//	   │  a batch has begun, and holds the lock on the report
//	   ▼
//	taken: it is decided, and written to the end
//	   │  the batch is committed, or has failed
//	   ▼
//	answered
//
// A request whose report another session has locked keeps waiting, in a batch
// of that report alone, which waits for the lock.
type request struct {
	change    change
	scope     scope
	deadline  time.Time   // zero for none
	abandoned func() bool // whether the caller or its client has gone
	state     atomic.Int32
	locked    bool // its report, by another session
	err       error
	outcome   chan error
}

// The states of a request.
const (
	waiting int32 = iota
	withdrawn
	taken
)

// errLate refuses a change that was not decided by its deadline.
var errLate = fault.New(fault.Unavailable, "the request has waited too long")

// take reports whether the change is to be made: its caller still waits, and
// its deadline has not passed by either clock. Checking the context is not
// enough: in a process that was frozen its timer fires late, and the monotonic
// clock stops with the machine.
func (r *request) take(now time.Time) bool {
	if r.state.Load() == taken { // the batch was halved
		return true
	}
	if !r.deadline.IsZero() && (!now.Before(r.deadline) || !now.Round(0).Before(r.deadline.Round(0))) {
		r.state.CompareAndSwap(waiting, withdrawn)
		r.err = errLate
		return false
	}
	if r.abandoned() {
		r.state.CompareAndSwap(waiting, withdrawn)
		r.err = context.Canceled
		return false
	}
	return r.state.CompareAndSwap(waiting, taken)
}

// A batch is the requests that share a transaction.
type batch struct {
	requests []*request
	scopes   map[scope]struct{}
	// waitsForLock makes the batch wait for a lock that another session holds.
	// All its requests are about one report, and it does not count towards
	// maxCommits.
	waitsForLock bool
	locked       []*request // those whose reports another session has locked
	err          error      // the database could not be reached, and no change was tried
}

// A committer writes the changes of requests. Requests that arrive together
// share a transaction: while one batch is written, the next gathers. A request
// that arrives alone is written at once.
//
// Changes of one report are never in two batches at a time, which would wait
// for each other's lock.
type committer struct {
	pool         *pgxpool.Pool
	keys         *event.Keyring
	desk         bool // see writeBatch
	committed    func(shards.Set)
	maxLockWaits int

	mu      sync.Mutex
	pending []*request    // which Run has not gathered yet, in the order of their arrival
	closed  bool          // no more are accepted
	wake    chan struct{} // pending requests, or enough for a batch

	written chan *batch

	// The fields below belong to Run.
	queue        []*request           // gathered and waiting, in the order of arrival
	locked       []*batch             // those that do not wait for their lock yet
	subjects     map[uuid.UUID]*batch // the batch that has a report, or is about to wait for it
	commits      int                  // batches under way
	lockWaits    int                  // batches under way that wait for a lock
	lastProgress time.Time            // when a batch last began or ended
}

// newCommitter returns a committer that leaves half of the pool's connections
// to others while many reports are locked, for example by a frozen replica.
func newCommitter(pool *pgxpool.Pool, keys *event.Keyring, desk bool, committed func(shards.Set)) *committer {
	return &committer{
		pool: pool, keys: keys, desk: desk, committed: committed, maxLockWaits: max(1, int(pool.Config().MaxConns)/2),
		wake: make(chan struct{}, 1), written: make(chan *batch), subjects: make(map[uuid.UUID]*batch),
	}
}

// errClosed refuses a change that arrives after the end.
var errClosed = fault.New(fault.Unavailable, "the service is stopping")

// do makes a change, together with others or alone, and returns its outcome. If
// ctx ends before the change is taken, nothing of it is written.
func (c *committer) do(ctx context.Context, ch change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{change: ch, scope: ch.scope(), outcome: make(chan error, 1)}
	r.deadline, _ = ctx.Deadline()
	r.abandoned = func() bool { return ctx.Err() != nil || service.ClientLeft(ctx) }
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errClosed
	}
	c.pending = append(c.pending, r)
	n := len(c.pending)
	c.mu.Unlock()
	if n == 1 || n == maxBatch { // between the two, Run would only wait for more
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	select {
	case err := <-r.outcome:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, withdrawn) {
			return ctx.Err()
		}
		return <-r.outcome
	}
}

// Run writes changes until ctx ends, and then those that it still has.
func (c *committer) Run(ctx context.Context) error {
	work := context.WithoutCancel(ctx)
	slow := time.NewTimer(slowCommit)
	defer slow.Stop()
	for end := ctx.Done(); end != nil || len(c.queue)+len(c.locked)+c.commits+c.lockWaits > 0; {
		now := time.Now()
		for b := c.next(now); b != nil; b = c.next(now) {
			go c.write(work, b)
		}
		if left := slowCommit - now.Sub(c.lastProgress); c.commits > 0 && left > 0 {
			slow.Reset(left)
		}
		select {
		case <-c.wake:
		case b := <-c.written:
			c.finish(b, time.Now())
		case <-slow.C: // try again to form a batch
		case <-end:
			end = nil
			c.mu.Lock()
			c.closed = true
			c.mu.Unlock()
			c.gather()
		}
	}
	return nil
}

// gather moves the pending requests to the queue. It runs just before a batch
// begins, so that the batch includes those that arrive at the last moment.
func (c *committer) gather() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, c.pending...)
	clear(c.pending)
	c.pending = c.pending[:0]
}

// next returns the batch that may begin now, or nil. Its requests are those
// that can go together, in the order of arrival.
func (c *committer) next(now time.Time) *batch {
	if len(c.locked) > 0 && c.lockWaits < c.maxLockWaits {
		b := c.locked[0]
		c.locked = c.locked[1:]
		c.lockWaits++
		return b
	}
	c.mu.Lock()
	waiting := len(c.queue) + len(c.pending)
	c.mu.Unlock()
	full, slow := waiting >= maxBatch, now.Sub(c.lastProgress) >= slowCommit
	if waiting == 0 || c.commits == maxCommits || c.commits > 0 && !full && !slow {
		return nil
	}
	c.gather()
	b := &batch{scopes: make(map[scope]struct{})}
	passed := make(map[uuid.UUID]bool) // subjects of which an earlier change has to wait
	rest := c.queue[:0]
	for _, r := range c.queue {
		subject := r.scope.subject
		switch {
		case r.state.Load() == withdrawn:
		case len(b.requests) < maxBatch && !passed[subject] && c.fits(b, r):
			c.add(b, r)
		default:
			passed[subject] = subject != uuid.Nil
			rest = append(rest, r)
		}
	}
	clear(c.queue[len(rest):])
	c.queue = rest
	if len(b.requests) == 0 {
		return nil
	}
	c.commits++
	c.lastProgress = now
	return b
}

// fits reports whether r can join b. A change without a subject always can.
func (c *committer) fits(b *batch, r *request) bool {
	if r.scope.subject == uuid.Nil {
		return true
	}
	if owner := c.subjects[r.scope.subject]; owner != b {
		return owner == nil
	}
	_, whole := b.scopes[scope{subject: r.scope.subject}]
	_, twice := b.scopes[r.scope]
	return r.scope.voter != "" && !whole && !twice
}

func (c *committer) add(b *batch, r *request) {
	b.requests = append(b.requests, r)
	if r.scope.subject != uuid.Nil {
		b.scopes[r.scope] = struct{}{}
		c.subjects[r.scope.subject] = b
	}
}

// finish releases the connection and the scopes that b held. Each report that
// another session has locked gets a batch of its own.
func (c *committer) finish(b *batch, now time.Time) {
	for s := range b.scopes {
		delete(c.subjects, s.subject)
	}
	if b.waitsForLock {
		c.lockWaits--
	} else {
		c.commits--
		c.lastProgress = now
	}
	if b.err != nil { // the waiting requests would fail likewise, after the same time
		c.gather()
		for _, r := range c.queue {
			r.outcome <- b.err
		}
		clear(c.queue)
		c.queue = c.queue[:0]
	}
	for _, r := range b.locked {
		own := c.subjects[r.scope.subject]
		if own == nil {
			own = &batch{scopes: make(map[scope]struct{}), waitsForLock: true}
			c.locked = append(c.locked, own)
		}
		c.add(own, r)
	}
}

// write makes the changes of a batch and answers their requests, except those
// whose reports are locked.
func (c *committer) write(ctx context.Context, b *batch) {
	acquire, cancel := context.WithTimeout(ctx, WorkTimeout)
	defer cancel()
	conn, err := c.pool.Acquire(acquire)
	if err != nil {
		b.err = fmt.Errorf("acquire connection: %w", err)
		for _, r := range b.requests {
			r.err = b.err
		}
	} else {
		c.apply(ctx, conn, b.requests, b.waitsForLock)
		conn.Release()
	}
	var answered []*request
	for _, r := range b.requests {
		if r.locked {
			b.locked = append(b.locked, r)
		} else {
			answered = append(answered, r)
		}
	}
	c.written <- b // first, so that the next batch begins while these are answered
	for _, r := range answered {
		r.outcome <- r.err
	}
}

// apply makes changes in one transaction. If one of them breaks the
// transaction, apply makes each half in its own, until the faulty change is
// alone.
func (c *committer) apply(ctx context.Context, conn *pgxpool.Conn, requests []*request, waitForLocks bool) {
	err := c.transact(ctx, conn, requests, waitForLocks)
	if err == nil {
		return
	}
	// This severity is certain proof that the transaction did not happen, and
	// that the server accepts another.
	failure, ok := errors.AsType[*pgconn.PgError](err)
	if undone := ok && failure.SeverityUnlocalized == "ERROR"; undone && len(requests) > 1 {
		half := len(requests) / 2
		c.apply(ctx, conn, requests[:half], waitForLocks)
		c.apply(ctx, conn, requests[half:], waitForLocks)
		return
	}
	for _, r := range requests {
		r.err, r.locked = err, false
	}
}

// transact makes changes in one transaction and sets the outcome of each. If it
// returns an error the transaction failed, whatever was set.
//
// Once begun it continues even if the clients have left: giving up half way
// would cost the connection, and leave open whether the changes were made.
func (c *committer) transact(ctx context.Context, conn *pgxpool.Conn, requests []*request, waitForLocks bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, WorkTimeout)
	defer cancel()
	defer func() {
		if conn.Conn().PgConn().TxStatus() != 'I' {
			_, _ = conn.Exec(ctx, "rollback") // if it fails, the pool closes the connection
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()

	reads := newReadBatch(waitForLocks)
	for _, r := range requests {
		r.change.read(reads)
	}
	queries := &pgx.Batch{}
	queries.Queue("begin")
	reads.queue(queries)
	if queries.Len() > 1 { // otherwise one round trip is enough
		if err := conn.SendBatch(ctx, queries).Close(); err != nil {
			return err
		}
		queries = &pgx.Batch{}
	}

	writes := &writeBatch{keys: c.keys, desk: c.desk}
	for _, r := range requests {
		// The report may be missing because another session has locked it: only
		// a batch that waits for locks can tell.
		report := reads.locks[r.scope.subject]
		r.locked = report != nil && !report.found && !waitForLocks
		if !r.locked && r.take(time.Now()) {
			r.err = r.change.write(writes)
		}
	}
	before := queries.Len()
	writes.queue(queries)
	if queries.Len() == before { // all were refused: the transaction ends with the rollback above
		return nil
	}
	queries.Queue("commit")
	if err := conn.SendBatch(ctx, queries).Close(); err != nil {
		return err
	}
	writes.wake(c.committed)
	return nil
}
