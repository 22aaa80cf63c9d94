package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// The oldest first is the newest first, backwards, whatever the pages.
func TestListOldestFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	instant := time.Now().Add(-time.Hour)
	for i := range 20 {
		rep := filing(draft(report.Public), ann, instant.Add(time.Duration(i/5)*time.Second))
		if _, err := f.Create(t.Context(), rep, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := f.pages(report.Filter{})
	slices.Reverse(want)
	if got := f.pages(report.Filter{OldestFirst: true}); !slices.Equal(got, want) || len(got) != 20 {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// pages turns all pages of a list.
func (f *fixture) pages(filter report.Filter) (ids []uuid.UUID) {
	f.t.Helper()
	var after *report.Cursor
	for {
		page, err := f.List(f.t.Context(), filter, after, 3, "")
		if err != nil {
			f.t.Fatal(err)
		}
		ids = append(ids, idsOf(page.Reports)...)
		if after = page.Next; after == nil {
			return ids
		}
	}
}
