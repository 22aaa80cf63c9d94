package api

import (
	"fmt"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// votes are the votes by their names.
var votes = map[reportapi.VoteType]report.Vote{reportapi.Upvote: report.Upvote, reportapi.Downvote: report.Downvote}

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
		"vote":         {Handler: limited(turns, h.Guests.may(h.Guests.Votes, report.ErrNoGuestVotes, service.Decoded(h.vote))), Timeout: changeTimeout},
		"withdrawVote": {Handler: limited(turns, h.Guests.may(h.Guests.Votes, report.ErrNoGuestVotes, h.withdrawVote)), Timeout: changeTimeout},
	}
}

// vote handles POST /reports/{id}/vote.
func (h Votes) vote(w http.ResponseWriter, r *http.Request, req reportapi.Vote) error {
	return h.castVote(w, r, votes[req.VoteType])
}

// withdrawVote handles DELETE /reports/{id}/vote.
func (h Votes) withdrawVote(w http.ResponseWriter, r *http.Request) error {
	return h.castVote(w, r, report.None)
}

func (h Votes) castVote(w http.ResponseWriter, r *http.Request, vote report.Vote) error {
	id := pathID(r)
	tally, err := h.Reports.Vote(r.Context(), id, report.Ballot{Voter: user(r).ID, Guest: user(r).Guest, Vote: vote, IfMatch: ifMatch(r)})
	if err != nil {
		return fmt.Errorf("vote: %w", err)
	}
	return service.Encode(w, http.StatusOK, reportapi.VoteResult{
		ReportID: id, VoteType: voteTypeOf(vote), Score: tally.Score, Version: tally.Version,
	})
}
