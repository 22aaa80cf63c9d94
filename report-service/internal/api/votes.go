package api

import (
	"fmt"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// votes are the votes by their names.
var votes = map[reportapi.VoteType]report.Vote{reportapi.Upvote: report.Upvote, reportapi.Downvote: report.Downvote}

// vote handles POST /reports/{id}/vote.
func (h reportHandlers) vote(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.Vote](r)
	if err != nil {
		return err
	}
	return h.castVote(w, r, votes[req.VoteType])
}

// withdrawVote handles DELETE /reports/{id}/vote.
func (h reportHandlers) withdrawVote(w http.ResponseWriter, r *http.Request) error {
	return h.castVote(w, r, report.None)
}

func (h reportHandlers) castVote(w http.ResponseWriter, r *http.Request, vote report.Vote) error {
	id := pathID(r)
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	tally, err := h.reports.Vote(r.Context(), id, report.Ballot{Voter: caller(r).ID, Guest: caller(r).Guest, Vote: vote, IfMatch: versions})
	if err != nil {
		return fmt.Errorf("vote: %w", err)
	}
	return service.Encode(w, http.StatusOK, reportapi.VoteResult{
		ReportID: id, VoteType: voteTypeOf(vote), Score: tally.Score, Version: tally.Version,
	})
}
