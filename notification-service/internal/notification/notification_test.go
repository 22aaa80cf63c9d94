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
