package report

import (
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Vote is a resident's vote on a report, as a number.
type Vote int8

// The votes; None stands for no vote.
const (
	Downvote Vote = -1
	None     Vote = 0
	Upvote   Vote = +1
)

// A Ballot is a resident's request to vote.
type Ballot struct {
	Voter   string
	Guest   bool     // whether the voter has no account
	Vote    Vote     // None withdraws
	IfMatch Versions // the versions at which it may happen
}

// Vote changes the voter's vote from before to that of the ballot, and the
// score with it; ok is false if both are the same.
//
// A withdrawn vote is not announced, so it leaves the version as it is.
func (f *Filing) Vote(b Ballot, before Vote, now time.Time) (ok bool, err error) {
	switch {
	case b.Voter == f.Reporter.ID:
		return false, fault.New(OwnReport, "you filed this report, so you cannot vote on it")
	case f.Status.Closed():
		return false, fault.New(Closed, "the report is "+string(f.Status)+", and takes no votes")
	case !b.IfMatch.Has(f.Version):
		return false, b.IfMatch.stale(f.Version)
	case before == b.Vote:
		return false, nil
	}
	f.Score += int64(b.Vote) - int64(before)
	if b.Vote == None {
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
