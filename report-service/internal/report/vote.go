package report

import (
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Vote is what a resident thinks of a report, as a number.
type Vote int8

// The votes; None is that of who has not voted.
const (
	Downvote Vote = -1
	None     Vote = 0
	Upvote   Vote = +1
)

// Vote changes the vote of voter from before to after and the score with it;
// ok is false when both are the same, and nothing is to be done.
//
// A withdrawn vote is not announced, so it leaves the version as it is.
func (f *Filing) Vote(voter string, before, after Vote, now time.Time) (ok bool, err error) {
	switch {
	case voter == f.Reporter.ID:
		return false, fault.New(OwnReport, "you filed this report, and cannot vote on it")
	case f.Status.Closed():
		return false, fault.New(Closed, "the report is "+string(f.Status)+", and takes no votes")
	case before == after:
		return false, nil
	}
	f.Score += int64(after) - int64(before)
	if after == None {
		f.UpdatedAt = stored(now)
		return true, nil
	}
	f.touch(now)
	return true, nil
}

// A Tally is a report's score and version after a vote.
type Tally struct {
	Score, Version int64
}
