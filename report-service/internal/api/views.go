package api

import (
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func reportOf(v report.View) reportapi.Report {
	out := reportapi.Report{
		ID: v.ID, Title: v.Title, Description: v.Description,
		CategoryID: v.Category.ID, CategoryName: v.Category.Name, Area: v.Area.Code, Address: v.Address,
		PrivacyLevel: reportapi.PrivacyLevel(v.Privacy), Visibility: reportapi.Visibility(v.Visibility), ReporterName: v.ReporterName,
		Status: reportapi.Status(v.Status), Closed: v.Status.Closed(),
		Transitions: make([]reportapi.Transition, len(v.Status.Transitions())), // an empty list is not null
		Score:       v.Score, Version: v.Version,
		CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
		Mine: v.Mine, MyVote: voteTypeOf(v.MyVote),
		Photos:       append([]uuid.UUID{}, v.Photos...), // an empty list is not null
		HiddenReason: v.HiddenReason, WithdrawnAt: orZero(v.WithdrawnAt), Question: openQuestionOf(v.Question),
	}
	if v.Position != nil {
		out.Latitude, out.Longitude = &v.Position.Latitude, &v.Position.Longitude
	}
	if v.Verdict != nil {
		out.Verdict = &reportapi.AskedVerdict{Asked: true, Until: v.Verdict.Until, Fixed: v.Verdict.Fixed, Text: v.Verdict.Text}
	}
	for i, t := range v.Status.Transitions() {
		out.Transitions[i] = reportapi.Transition{Status: reportapi.Status(t.To), NoteRequired: t.NoteRequired}
	}
	return out
}

// voteTypeOf returns "" for none.
func voteTypeOf(v report.Vote) reportapi.VoteType {
	switch v {
	case report.Upvote:
		return reportapi.Upvote
	case report.Downvote:
		return reportapi.Downvote
	case report.None:
	}
	return ""
}

// correctionOf returns nil for an entry that is not a correction.
func correctionOf(c *report.Corrected) *reportapi.HistoryCorrection {
	if c == nil {
		return nil
	}
	var out reportapi.HistoryCorrection
	if c.Category != nil {
		out.Category = &reportapi.CategoryReplaced{From: c.Category.From, To: c.Category.To}
	}
	if c.Position != nil {
		out.Position = &reportapi.PositionReplaced{To: positionOf(c.Position.To), From: positionOf(c.Position.From)}
	}
	if c.Address != nil {
		out.Address = &reportapi.AddressReplaced{From: c.Address.From, To: c.Address.To}
	}
	return &out
}

func verdictOf(v report.Verdict) reportapi.Verdict {
	return reportapi.Verdict{Fixed: v.Fixed, Text: v.Text, GivenAt: v.GivenAt, Until: v.Until}
}

func positionOf(p *report.Position) *reportapi.Place {
	if p == nil {
		return nil
	}
	return &reportapi.Place{Latitude: p.Latitude, Longitude: p.Longitude}
}

func pageOf(p report.Page) reportapi.ReportPage {
	out := reportapi.ReportPage{Reports: make([]reportapi.Report, len(p.Reports))}
	for i, v := range p.Reports {
		out.Reports[i] = reportOf(v)
	}
	if p.Next != nil {
		out.NextCursor = p.Next.String()
	}
	return out
}
