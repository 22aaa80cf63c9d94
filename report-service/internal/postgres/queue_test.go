package postgres_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// The queue shows what is overdue, and what is due next first.
func TestQueueOfOverdue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	never := f.file(ann, draft(report.Public))
	d := f.withTarget(report.Public)
	soon, later, late := f.file(ann, d), f.file(ann, d), f.file(ann, d)
	f.exec(`update reports set due_at = due_at + interval '1 hour' where id = $1`, later.ID)
	f.late(late.ID, 5)
	for range calendar.MaxOverdue { // a level a minute
		f.overdue(late.ID)
	}
	for _, tt := range []struct {
		name   string
		filter report.Filter
		want   []uuid.UUID
	}{
		{"due", report.Filter{Order: report.Due}, []uuid.UUID{late.ID, soon.ID, later.ID, never.ID}},
		{"overdue", report.Filter{Overdue: 1}, []uuid.UUID{late.ID}},
		{"three times", report.Filter{Overdue: 3}, []uuid.UUID{late.ID}},
	} {
		var got []uuid.UUID
		var after *report.Cursor
		for {
			page, err := f.workbench.Queue(t.Context(), tt.filter, after, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range page.Tasks {
				got = append(got, task.ID)
			}
			if after = page.Next; after == nil {
				break
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: the queue shows %v, want %v", tt.name, got, tt.want)
		}
	}
}
