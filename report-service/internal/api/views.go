package api

import (
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func reportOf(v report.View) reportapi.Report {
	out := reportapi.Report{
		ID: v.ID, Title: v.Title, Description: v.Description,
		CategoryID: v.Category.ID, CategoryName: v.Category.Name, Area: v.Area.Code, Asset: v.Asset.Key, AssetName: v.Asset.Name, Address: v.Address,
		PrivacyLevel: reportapi.PrivacyLevel(v.Privacy), Visibility: reportapi.Visibility(v.Visibility), ReporterName: v.ReporterName,
		Status: reportapi.Status(v.Status), Closed: v.Status.Closed(),
		Transitions: service.Each(v.Status.Transitions(), transitionOf),
		Score:       v.Score, Version: v.Version,
		CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
		Mine: v.Mine, MyVote: voteTypes[v.MyVote],
		Photos:       append([]uuid.UUID{}, v.Photos...), // an empty list is not null
		HiddenReason: v.HiddenReason, WithdrawnAt: service.OrZero(v.WithdrawnAt), Question: openQuestionOf(v.Question),
	}
	if v.Position != nil {
		out.Latitude, out.Longitude = &v.Position.Latitude, &v.Position.Longitude
	}
	if v.Verdict != nil {
		out.Verdict = &reportapi.AskedVerdict{Asked: true, Until: v.Verdict.Until.UTC(), Fixed: v.Verdict.Fixed, Text: v.Verdict.Text}
	}
	return out
}

func transitionOf(t report.Transition) reportapi.Transition {
	return reportapi.Transition{Status: reportapi.Status(t.To), NoteRequired: t.NoteRequired}
}

// correctionOf returns nil for an entry that is not a correction.
func correctionOf(c *report.Corrected) *reportapi.HistoryCorrection {
	if c == nil {
		return nil
	}
	out := reportapi.HistoryCorrection{ByReporter: c.ByReporter, Words: c.Words, Place: c.Place}
	if c.Category != nil {
		out.Category = &reportapi.CategoryReplaced{From: c.Category.From, To: c.Category.To}
	}
	if c.Position != nil {
		out.Position = &reportapi.PositionReplaced{To: positionOf(c.Position.To), From: positionOf(c.Position.From)}
	}
	if c.Address != nil {
		out.Address = &reportapi.AddressReplaced{From: c.Address.From, To: c.Address.To}
	}
	if c.Asset != nil {
		out.Asset = &reportapi.AssetReplaced{From: c.Asset.From, To: c.Asset.To}
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
	out := reportapi.ReportPage{Reports: service.Each(p.Reports, reportOf)}
	if p.Next != nil {
		out.NextCursor = p.Next.String()
	}
	if p.Figures != nil {
		out.Figures = &reportapi.Figures{Open: p.Figures.Open, Resolved: p.Figures.Resolved, MedianSeconds: secondsOf(p.Figures.Median)}
	}
	return out
}

// openQuestionOf returns nil for none.
func openQuestionOf(q *report.OpenQuestion) *reportapi.OpenQuestion {
	if q == nil {
		return nil
	}
	return &reportapi.OpenQuestion{ID: q.ID, AskedAt: q.At.UTC(), EndsOn: q.EndsOn}
}

func taskOf(t report.Task) reportapi.Task {
	out := reportapi.Task{
		ID: t.ID, Title: t.Title, CategoryID: t.Category.ID, CategoryName: t.Category.Name, Area: t.Area.Code, Asset: t.Asset.Key, AssetName: t.Asset.Name, Address: t.Address,
		PrivacyLevel: reportapi.PrivacyLevel(t.Privacy), Visibility: reportapi.Visibility(t.Visibility), Status: reportapi.Status(t.Status), Transitions: service.Each(t.Status.Transitions(), transitionOf),
		Score: t.Score, Version: t.Version, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
		Assignee: personOf(t.Assignee), Routed: t.Routed, Notes: t.Notes,
		DueAt: service.OrZero(t.DueAt), OverdueLevel: int32(t.Overdue), Waiting: t.Waiting, Question: openQuestionOf(t.Question), NotAnswered: t.Unanswered,
		Photos:       append([]uuid.UUID{}, t.Photos...),
		HiddenReason: t.HiddenReason, WithdrawnAt: service.OrZero(t.WithdrawnAt), AbuseReports: t.Abuse, NewComments: t.Comments, Disputed: t.Disputed,
	}
	if t.Position != nil {
		out.Latitude, out.Longitude = &t.Position.Latitude, &t.Position.Longitude
	}
	if t.Original != nil {
		out.DuplicateOf = *t.Original
	}
	out.ExternalRef = externalOf(t.External)
	if t.Perhaps != nil {
		out.PerhapsOf = &reportapi.LikelyOriginal{ID: t.Perhaps.ID, Title: t.Perhaps.Title}
	}
	if t.Department != nil {
		out.DepartmentID, out.DepartmentName = t.Department.ID, t.Department.Name
	}
	return out
}

// orEmpty returns items as an answer has them: an empty list is [], not null.
func orEmpty[T any](items []T) []T {
	return append([]T{}, items...)
}

func personOf(o *report.Official) reportapi.Person {
	if o == nil {
		return reportapi.Person{}
	}
	return reportapi.Person{ID: o.ID, Name: o.Name}
}
