package api

import (
	"net/http"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// votes are the votes by their names, and voteTypes the names by the votes; "" is none.
var (
	votes     = map[reportapi.VoteType]report.Vote{reportapi.Upvote: report.Upvote, reportapi.Downvote: report.Downvote}
	voteTypes = map[report.Vote]reportapi.VoteType{report.Upvote: reportapi.Upvote, report.Downvote: reportapi.Downvote}
)

// Votes are those on reports.
type Votes struct {
	Reports *postgres.Reports
	PerUser ratelimit.Limit
	Guests  Guests
}

// Operations are those on votes.
func (h Votes) Operations() openapi.Operations {
	turns := ratelimit.New(h.PerUser)
	return openapi.Operations{
		"vote":         {Handler: limited(turns, h.Guests.may(h.Guests.Votes, report.ErrNoGuestVotes, answeredTo(h.vote))), Timeout: changeTimeout},
		"withdrawVote": {Handler: limited(turns, h.Guests.may(h.Guests.Votes, report.ErrNoGuestVotes, answered(h.withdrawVote))), Timeout: changeTimeout},
	}
}

// vote handles POST /reports/{id}/vote.
func (h Votes) vote(r *http.Request, req reportapi.Vote) (reportapi.VoteResult, error) {
	return h.castVote(r, votes[req.VoteType])
}

// withdrawVote handles DELETE /reports/{id}/vote.
func (h Votes) withdrawVote(r *http.Request) (reportapi.VoteResult, error) {
	return h.castVote(r, report.None)
}

func (h Votes) castVote(r *http.Request, vote report.Vote) (reportapi.VoteResult, error) {
	id := pathID(r)
	tally, err := h.Reports.Vote(r.Context(), id, report.Ballot{Voter: user(r).ID, Guest: user(r).Guest, Vote: vote, IfMatch: ifMatch(r)})
	return reportapi.VoteResult{ReportID: id, VoteType: voteTypes[vote], Score: tally.Score, Version: tally.Version}, err
}
