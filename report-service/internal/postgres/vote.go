package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Vote casts a ballot on a report.
func (s *Reports) Vote(ctx context.Context, id uuid.UUID, b report.Ballot) (report.Tally, error) {
	c := &voteChange{trace: service.TraceFrom(ctx), id: id, ballot: b}
	if err := s.db.do(ctx, b.Voter, b.Guest, c); err != nil {
		return report.Tally{}, err
	}
	return c.tally, nil
}

type voteChange struct {
	trace  string
	id     uuid.UUID
	ballot report.Ballot
	locked *lockedReport
	before *earlierVote
	tally  report.Tally
}

// scope allows votes of other voters on the same report in the same
// transaction.
func (c *voteChange) scope() scope { return scope{c.id, c.ballot.Voter} }

func (c *voteChange) read(r *readBatch) {
	c.locked, c.before = r.lock(c.id, report.Scope{}), r.vote(c.id, c.ballot.Voter)
}

func (c *voteChange) write(w *writeBatch) error {
	if err := c.locked.checkPublic(); err != nil {
		return err
	}
	filing := c.locked.Filing
	ok, err := filing.Vote(c.ballot, c.before.vote, time.Now())
	if err != nil {
		return err
	}
	c.tally = report.Tally{Score: filing.Score, Version: filing.Version}
	if !ok {
		w.doneBefore = true
		return nil
	}
	if c.ballot.Vote == report.None {
		w.others.Queue(`delete from votes where report_id = $1 and voter_id = $2`, key(c.id), c.ballot.Voter)
	} else {
		if err := w.enqueue(voteReceived(&filing, c.ballot), c.trace); err != nil {
			return err
		}
		w.vote(voteRow{c.id, c.ballot.Voter, c.ballot.Vote, filing.UpdatedAt}, c.before.vote)
	}
	c.locked.Filing = filing
	w.update(c.locked)
	return nil
}
