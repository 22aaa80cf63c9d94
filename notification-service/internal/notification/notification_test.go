package notification_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
)

// Overdue reports are notified to officials, and neither to the reporter nor to
// everybody.
func TestOverdueIsForOfficials(t *testing.T) {
	t.Parallel()
	effect := notification.Of(&event.ReportOverdue{CategoryID: 2, CategoryName: "Lights", DueAt: 1767222000, Level: 2}, "ann")
	if effect.Public {
		t.Error("the public feed shows it")
	}
	if len(effect.Drafts) != 1 || effect.Drafts[0].Stream != notification.Officials || effect.Drafts[0].Data.OverdueLevel != 2 {
		t.Errorf("drafts are %+v, want one of level 2 for the officials", effect.Drafts)
	}
}

// Disputes are for officials, and for everybody without who says it. A person who is in
// the message gets nothing of their own.
func TestDisputesAreForOfficials(t *testing.T) {
	t.Parallel()
	effect := notification.Of(&event.ReportDisputed{CategoryID: 2, CategoryName: "Lights", Retracted: true}, "ann")
	if len(effect.Drafts) != 1 || effect.Drafts[0].Stream != notification.Officials || !effect.Drafts[0].Data.Retracted {
		t.Errorf("drafts are %+v, want one for the officials", effect.Drafts)
	}
	if !effect.Public || effect.Feed.CategoryID != 2 || effect.Feed.ForFollowers() {
		t.Errorf("the feed shows %+v: %t; followers get it: %t", effect.Feed, effect.Public, effect.Feed.ForFollowers())
	}
}

// The reporter of a resolved report is asked whether it is fixed, and nobody else.
func TestOnlyTheReporterIsAsked(t *testing.T) {
	t.Parallel()
	m := &event.StatusUpdate{NewStatus: event.Resolved, VerdictUntil: 1768435200}
	effect := notification.Of(m, "ann")
	if until := effect.Drafts[0].Data.VerdictUntil; until == nil || until.Unix() != m.VerdictUntil {
		t.Errorf("the reporter is asked until %v", until)
	}
	if effect.Feed.VerdictUntil != nil {
		t.Error("followers and the feed are asked")
	}
	m.VerdictUntil = 0
	if until := notification.Of(m, "ann").Drafts[0].Data.VerdictUntil; until != nil {
		t.Errorf("the reporter is asked until %v although the city asks nobody", until)
	}
}

// Questions are for the reporter alone, answers for officials, who see who asked; neither
// the public feed nor followers get any of them.
func TestQuestionsArePrivate(t *testing.T) {
	t.Parallel()
	for m, want := range map[event.Message]notification.Draft{
		&event.QuestionAsked{EndsOn: "2026-12-11"}:    {Stream: notification.UserStream("ann"), Data: notification.Data{EndsOn: "2026-12-11"}},
		&event.QuestionReminded{EndsOn: "2026-12-11"}: {Stream: notification.UserStream("ann"), Data: notification.Data{EndsOn: "2026-12-11"}},
		&event.ReportAnswered{}:                       {Stream: notification.Officials, Data: notification.Data{AskedBy: "ann"}},
		&event.QuestionExpired{}:                      {Stream: notification.Officials, Data: notification.Data{AskedBy: "ann"}},
	} {
		effect := notification.Of(m, "ann")
		if effect.Public || effect.Feed.ForFollowers() || effect.Feed.AskedBy != "" {
			t.Errorf("%s: others get %+v", m.Key(), effect.Feed)
		}
		if len(effect.Drafts) != 1 || effect.Drafts[0].Stream != want.Stream || effect.Drafts[0].Data.EndsOn != want.Data.EndsOn || effect.Drafts[0].Data.AskedBy != want.Data.AskedBy {
			t.Errorf("%s: drafts are %+v, want %+v", m.Key(), effect.Drafts, want)
		}
	}
}

// Of a report that only the city sees the reporter and officials get everything, and nobody
// else anything. That a report is restricted is for everybody else that it is hidden.
func TestPrivateReportsAreForTheCity(t *testing.T) {
	t.Parallel()
	about := event.Subject{Private: true}
	for _, m := range []event.Message{
		&event.ReportCreated{Subject: about}, &event.StatusUpdate{Subject: about}, &event.ReportCorrected{Subject: about},
		&event.PhotoReady{Subject: about}, &event.ReportDisputed{Subject: about}, &event.ReportCommented{Subject: about},
		&event.ReportModerated{Subject: about, Action: event.Hidden, Hidden: true}, &event.ReportModerated{Subject: about, Action: event.ShownAgain},
		&event.ReportModerated{Subject: about, Action: event.Redacted}, &event.ReportModerated{Subject: about, Action: event.Withdrawn, Hidden: true},
	} {
		effect := notification.Of(m, "ann")
		if effect.Public || effect.Feed.ForFollowers() {
			t.Errorf("%s: others get %+v", m.Key(), effect.Feed)
		}
		if len(effect.Drafts) != 1 || !effect.Drafts[0].Data.Private {
			t.Errorf("%s: drafts are %+v, want one that says that it is private", m.Key(), effect.Drafts)
		}
	}
	effect := notification.Of(&event.ReportModerated{Subject: about, Action: event.Restricted, Hidden: true}, "ann")
	if !effect.Public || effect.Feed.Private || effect.Feed.Action != event.Hidden || effect.Drafts[0].Data.Action != event.Restricted {
		t.Errorf("the feed shows %+v, the reporter %+v", effect.Feed, effect.Drafts)
	}
}
