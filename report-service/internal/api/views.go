package api

import "github.com/cityconnect/cityconnect/report-service/internal/report"

func reportOf(v report.View) Report {
	out := Report{
		ID: v.ID, Title: v.Title, Description: v.Description,
		CategoryID: v.Category.ID, CategoryName: v.Category.Name, Address: v.Address,
		PrivacyLevel: PrivacyLevel(v.Privacy), ReporterName: v.ReporterName,
		Status: Status(v.Status), Closed: v.Status.Closed(), Transitions: transitionsOf(v.Status),
		Score: v.Score, Version: v.Version,
		CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
		Mine: v.Mine, MyVote: voteTypeOf(v.MyVote),
	}
	if v.Position != nil {
		out.Latitude, out.Longitude = &v.Position.Latitude, &v.Position.Longitude
	}
	return out
}

// transitionsOf returns the moves that s allows; a list without any is empty
// and not null.
func transitionsOf(s report.Status) []Transition {
	out := make([]Transition, len(s.Transitions()))
	for i, t := range s.Transitions() {
		out[i] = Transition{Status: Status(t.To), NoteRequired: t.NoteRequired}
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

func historyOf(changes []report.Change) History {
	out := History{History: make([]HistoryEntry, len(changes))}
	for i, c := range changes {
		out.History[i] = HistoryEntry{
			FromStatus: Status(c.From), ToStatus: Status(c.To), Note: c.Note,
			Version: c.Version, ChangedAt: c.At,
		}
	}
	return out
}
