package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Vote makes vote the voter's vote on a report; report.None withdraws it.
func (s *Store) Vote(ctx context.Context, id uuid.UUID, voter string, vote report.Vote) (report.Tally, error) {
	c := &voteChange{trace: service.TraceFrom(ctx), id: id, voter: voter, vote: vote}
	if err := s.committer.do(ctx, c); err != nil {
		return report.Tally{}, err
	}
	return c.tally, nil
}

type voteChange struct {
	trace  string
	id     uuid.UUID
	voter  string
	vote   report.Vote
	locked *lockedReport
	voted  bool
	before report.Vote
	tally  report.Tally
}

// scope lets the votes of others on the same report be written together.
func (c *voteChange) scope() scope { return scope{c.id, c.voter} }

// read queues the lock first: only a later statement sees for certain what
// the one who held it before has voted.
func (c *voteChange) read(r *readBatch) {
	c.locked, c.before = r.lock(c.id), report.None
	r.batch.Queue(`select value from votes where report_id = $1 and voter_id = $2`, key(c.id), c.voter).
		QueryRow(optional(&c.voted, &c.before))
}

func (c *voteChange) write(w *writeBatch) error {
	if err := c.locked.check(); err != nil {
		return err
	}
	filing := c.locked.Filing
	ok, err := filing.Vote(c.voter, c.before, c.vote, time.Now())
	if err != nil {
		return err
	}
	c.tally = report.Tally{Score: filing.Score, Version: filing.Version}
	if !ok {
		return nil
	}
	if c.vote == report.None {
		w.others.Queue(`delete from votes where report_id = $1 and voter_id = $2`, key(c.id), c.voter)
	} else {
		if err := w.enqueue(voted(&filing, c.voter, c.vote), filing.Reporter.ID, c.trace); err != nil {
			return err
		}
		w.votes = append(w.votes, voteRow{c.id, c.voter, c.vote, filing.UpdatedAt})
	}
	c.locked.Filing = filing
	w.update(c.locked)
	return nil
}
