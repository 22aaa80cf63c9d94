package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A Tally is a report's score and version after a vote.
type Tally struct {
	Score, Version int64
}

// Vote makes vote the voter's vote on a report; report.None withdraws it.
func (s *Store) Vote(ctx context.Context, id uuid.UUID, voter string, vote report.Vote) (Tally, error) {
	c := &ballot{ctx: ctx, store: s, id: id, voter: voter, vote: vote}
	if err := s.run(ctx, c); err != nil {
		return Tally{}, err
	}
	if c.announced {
		s.committed()
	}
	return Tally{Score: c.locked.Score, Version: c.locked.Version}, nil
}

// A ballot is the change that Vote makes.
type ballot struct {
	ctx       context.Context // for the trace
	store     *Store
	id        uuid.UUID
	voter     string
	vote      report.Vote
	locked    locked
	voted     bool
	before    report.Vote
	announced bool
}

// read queues the lock first: only a later statement sees for certain what
// the one who held it before has voted.
func (c *ballot) read(b *pgx.Batch) {
	c.locked.read(b, c.id)
	b.Queue(`select value from votes where report_id = $1 and voter_id = $2`, c.id, c.voter).
		QueryRow(optional(&c.voted, &c.before))
}

func (c *ballot) write(b *pgx.Batch) error {
	if err := c.locked.check(); err != nil {
		return err
	}
	ok, err := c.locked.Filing.Vote(c.voter, c.before, c.vote, time.Now())
	if err != nil || !ok {
		return err
	}
	c.locked.update(b)
	if c.vote == report.None {
		b.Queue(`delete from votes where report_id = $1 and voter_id = $2`, c.id, c.voter)
		return nil
	}
	b.Queue(`
		insert into votes (report_id, voter_id, value, voted_at) values ($1, $2, $3, $4)
		on conflict (report_id, voter_id) do update set value = excluded.value, voted_at = excluded.voted_at`,
		c.id, c.voter, int16(c.vote), c.locked.UpdatedAt)
	c.announced = true
	return c.store.enqueue(c.ctx, b, voted(&c.locked.Filing, c.voter, c.vote), c.locked.Reporter.ID)
}
