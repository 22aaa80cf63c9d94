package postgres

import (
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// named returns the reporter as a message may name him: not at all when the
// report is anonymous.
func named(f *report.Filing) report.Reporter {
	if f.Privacy != report.Public {
		return report.Reporter{}
	}
	return f.Reporter
}

func created(f *report.Filing) *event.ReportCreated {
	reporter := named(f)
	return &event.ReportCreated{
		ReportID: f.ID, ReportVersion: f.Version, ReportTitle: f.Title,
		CategoryID: f.Category.ID, CategoryName: f.Category.Name,
		ReporterID: reporter.ID, ReporterName: reporter.Name,
		PrivacyLevel: event.Privacy(f.Privacy), Timestamp: f.CreatedAt.Unix(),
	}
}

func moved(f *report.Filing, c report.Change) *event.StatusUpdate {
	return &event.StatusUpdate{
		ReportID: f.ID, ReportVersion: c.Version, ReportTitle: f.Title,
		NewStatus: event.Status(c.To), ReporterID: named(f).ID, Note: c.Note, Timestamp: c.At.Unix(),
	}
}

func voted(f *report.Filing, voter string, vote report.Vote) *event.VoteReceived {
	direction := event.Upvote
	if vote == report.Downvote {
		direction = event.Downvote
	}
	return &event.VoteReceived{
		ReportID: f.ID, ReportVersion: f.Version, ReportTitle: f.Title,
		ReporterID: named(f).ID, VoterID: voter, VoteType: direction,
		NewScore: new(f.Score), Timestamp: f.UpdatedAt.Unix(),
	}
}
