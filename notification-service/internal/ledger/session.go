package ledger

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// deathCheckEvery is how often a worker checks whether another has died.
	deathCheckEvery = 500 * time.Millisecond
	// deadAfter is how long a worker must be without its session to count as dead. A
	// living one has a new session before.
	deadAfter = 1500 * time.Millisecond
	// sessionGrace is how long a worker starts attempts without its session. It is
	// below deadAfter: after that another may have its lanes.
	sessionGrace = 500 * time.Millisecond
	// reconnectGrace is how long after it has lost its own session a worker counts no
	// other as dead: a restart of the database ends all sessions at once.
	reconnectGrace = 5 * time.Second
	// withSession is the version in the ids of workers that have sessions. The workers
	// of 1.0.0 have none, and random ids, which are of version 4: their lanes are free
	// when the leases end.
	withSession = 8
)

// A Session shows the other workers that this one is alive, and frees the lanes of those
// that have died: a lock that belongs to a connection with the database. The server
// ends a killed process's connection at once, while one that hangs, or is cut off, keeps
// its lock, and its lanes until the leases end.
type Session struct {
	database *pgx.ConnConfig
	owner    uuid.UUID
	log      zerolog.Logger

	mu      sync.Mutex
	held    bool
	changes int // how often held has changed

	// The fields below are Run's alone.
	reconnected time.Time               // zero for the first connection
	absent      map[uuid.UUID]time.Time // workers seen without their sessions, since when
}

// NewSession returns the session of a worker, with connections of its own: a busy pool must
// not cost the lanes.
func NewSession(database *pgx.ConnConfig, log zerolog.Logger) *Session {
	owner := uuid.New()
	owner[6] = owner[6]&0x0f | withSession<<4
	return &Session{database: database, owner: owner, log: log}
}

// Run runs the dispatchers of a worker, and the session until the last of them has drained.
func (s *Session) Run(ctx context.Context, dispatchers ...*Dispatcher) error {
	session, end := context.WithCancel(context.WithoutCancel(ctx))
	var held sync.WaitGroup
	held.Go(func() { s.hold(session) })
	var g errgroup.Group
	for _, d := range dispatchers {
		d.owner, d.session = s.owner, s
		g.Go(func() error { return d.Run(ctx) })
	}
	err := g.Wait()
	end()
	held.Wait()
	return err
}

// hold keeps a session until ctx ends.
func (s *Session) hold(ctx context.Context) {
	retry := backoff.Backoff{First: minRetry, Max: time.Second}
	for ctx.Err() == nil {
		err := s.holdOne(ctx, &retry)
		s.set(false)
		if ctx.Err() == nil {
			s.log.Warn().Str("error", pgpool.LogText(err)).Msg("the session that shows this worker to be alive is lost, will reconnect")
			s.reconnected = time.Now()
			_ = backoff.Sleep(ctx, retry.Next()) // its error is ctx's
		}
	}
}

func (s *Session) holdOne(ctx context.Context, retry *backoff.Backoff) error {
	connecting, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, s.database)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_ = conn.Close(closing) // it may be half dead
	}()
	// The connection before may hold the lock a little longer.
	if _, err := conn.Exec(connecting, `select pg_advisory_lock($1)`, sessionLock(s.owner)); err != nil {
		return fmt.Errorf("lock the session: %w", err)
	}
	retry.Reset()
	s.absent = make(map[uuid.UUID]time.Time)
	s.set(true)
	for backoff.Sleep(ctx, deathCheckEvery) == nil {
		if err := s.releaseDead(ctx, conn); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sessionLock returns the number of a worker's advisory lock.
func sessionLock(owner uuid.UUID) int64 { return int64(binary.BigEndian.Uint64(owner[8:])) }

// releaseDead frees the lanes of workers that have been without their sessions for deadAfter.
func (s *Session) releaseDead(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	others, err := pgpool.Collect(ctx, conn, "find other workers", pgx.RowTo[uuid.UUID], `
		select distinct owner from lanes where owner <> $1 and lease_until > now() and substr(owner::text, 15, 1) = $2::text`,
		s.owner, fmt.Sprint(withSession))
	if err != nil {
		return err
	}
	before := s.absent
	s.absent = make(map[uuid.UUID]time.Time)
	for _, owner := range others {
		ended, err := pgpool.Value[bool](ctx, conn, "check for dead workers", `select pg_try_advisory_xact_lock_shared($1)`, sessionLock(owner))
		if err != nil {
			return err
		}
		if !ended {
			continue
		}
		now := time.Now()
		since, seen := before[owner]
		if !seen {
			since = now
		}
		s.absent[owner] = since
		if now.Sub(since) < deadAfter || now.Sub(s.reconnected) < reconnectGrace {
			continue
		}
		tag, err := conn.Exec(ctx, `
			update lanes set owner = null, lease_until = null where owner = $1 and pg_try_advisory_xact_lock_shared($2)`, owner, sessionLock(owner))
		if err != nil {
			return fmt.Errorf("release the lanes of a dead worker: %w", err)
		}
		s.log.Warn().Stringer("worker", owner).Int64("lanes", tag.RowsAffected()).Msg("a worker died, its lanes are free")
	}
	return nil
}

func (s *Session) set(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != held {
		s.held = held
		s.changes++
	}
}

// state reports whether the session is held, and how often that has changed. A worker
// without one, as in tests, has always held it.
func (s *Session) state() (held bool, changes int) {
	if s == nil {
		return true, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, s.changes
}
