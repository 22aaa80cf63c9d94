package api

import (
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func reportOf(v report.View) Report {
	out := Report{
		ID: v.ID, Title: v.Title, Description: v.Description,
		CategoryID: v.Category.ID, CategoryName: v.Category.Name, Area: v.Area.Code, Address: v.Address,
		PrivacyLevel: PrivacyLevel(v.Privacy), Visibility: Visibility(v.Visibility), ReporterName: v.ReporterName,
		Status: Status(v.Status), Closed: v.Status.Closed(),
		Transitions: make([]Transition, len(v.Status.Transitions())), // an empty list is not null
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
		out.Verdict = &AskedVerdict{Asked: true, Until: v.Verdict.Until, Fixed: v.Verdict.Fixed, Text: v.Verdict.Text}
	}
	for i, t := range v.Status.Transitions() {
		out.Transitions[i] = Transition{Status: Status(t.To), NoteRequired: t.NoteRequired}
	}
	return out
}

// voteTypeOf returns "" for none.
func voteTypeOf(v report.Vote) VoteType {
	switch v {
	case report.Upvote:
		return Upvote
	case report.Downvote:
		return Downvote
	case report.None:
	}
	return ""
}

// correctionOf returns nil for an entry that is not a correction.
func correctionOf(c *report.Corrected) *HistoryCorrection {
	if c == nil {
		return nil
	}
	var out HistoryCorrection
	if c.Category != nil {
		out.Category = &CategoryReplaced{From: c.Category.From, To: c.Category.To}
	}
	if c.Position != nil {
		out.Position = &PositionReplaced{To: positionOf(c.Position.To), From: positionOf(c.Position.From)}
	}
	if c.Address != nil {
		out.Address = &AddressReplaced{From: c.Address.From, To: c.Address.To}
	}
	return &out
}

func verdictOf(v report.Verdict) Verdict {
	return Verdict{Fixed: v.Fixed, Text: v.Text, GivenAt: v.GivenAt, Until: v.Until}
}

func positionOf(p *report.Position) *Place {
	if p == nil {
		return nil
	}
	return &Place{Latitude: p.Latitude, Longitude: p.Longitude}
}

func pageOf(p report.Page) ReportPage {
	out := ReportPage{Reports: make([]Report, len(p.Reports))}
	for i, v := range p.Reports {
		out.Reports[i] = reportOf(v)
	}
	if p.Next != nil {
		out.NextCursor = p.Next.String()
	}
	return out
}
