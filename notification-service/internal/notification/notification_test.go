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
