package outbox_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A message of any kind whose row is deleted before it was published is named by report,
// version and kind, until an operator closes it; what the programs delete is not.
func TestDeletedMessagesAreNamed(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Report(t)
	results, store := reconciliation.NewResults(pool, outbox.AuditClosing), outbox.NewStore(pool, func(shards.Set) {})
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}

	discarded, published := insert(t, pool, "failed", 5), insert(t, pool, "published", 0)
	exec(`update outbox_messages set published_at = now() - interval '1 minute' where id = $1`, published)
	if err := store.Discard(ctx, "otto", discarded, "obsolete"); err != nil {
		t.Fatal(err)
	}
	if done, err := store.RepublishChosen(ctx, "otto", []uuid.UUID{published}, "purged"); err != nil || done.Pending != 1 {
		t.Fatalf("published again: %+v, %v", done, err)
	}
	exec(`update outbox_messages set status = 'published'`)
	exec(`delete from outbox_messages`) // as the cleaner does
	if groups, err := results.Groups(ctx); err != nil || len(groups) != 0 {
		t.Fatalf("%+v (error %v) after what programs delete, want nothing", groups, err)
	}

	want := make(map[uuid.UUID]event.Key)
	for _, key := range event.AllKeys() {
		id := insert(t, pool, "pending", 0)
		want[id] = key
		exec(`update outbox_messages set routing_key = $2, report_version = 7 where id = $1`, id, key)
	}
	deleted := insert(t, pool, "pending", 2)
	want[deleted] = event.ReportCreatedKey
	exec(`update outbox_messages set report_version = 7 where id = $1`, deleted)
	exec(`delete from outbox_messages where id = $1`, deleted)
	exec(`truncate outbox_messages`)

	found, err := results.Messages(ctx, reconciliation.Selection{Group: "outbox", State: reconciliation.Missing, Limit: 100})
	if err != nil || len(found) != len(want) {
		t.Fatalf("%d messages are named (error %v), want %d", len(found), err, len(want))
	}
	var ids []uuid.UUID
	for _, m := range found {
		ids = append(ids, m.ID)
		if m.Key != want[m.ID] || m.ReportID == nil || *m.ReportID != m.ID || m.ReportVersion != 7 || time.Since(m.To) > time.Hour {
			t.Errorf("named as %+v, want a %s of version 7", m, want[m.ID])
		}
	}
	if n := testutil.ToFloat64(results); n != float64(len(want)) {
		t.Errorf("the metric is %v, want %d", n, len(want))
	}
	if story, err := store.Story(ctx, deleted); err != nil || len(story.Entries) != 1 || *story.Entries[0].Reason != "deleted by hand before it was published" {
		t.Errorf("its story is %+v (error %v), want that it was deleted", story, err)
	}
	for _, left := range []int{len(want), 0} {
		closed, err := results.Close(ctx, reconciliation.Closing{Actor: "otto", Group: "outbox", Reason: "told by hand", Messages: ids})
		if err != nil || closed != left {
			t.Errorf("%d are closed (error %v), want %d", closed, err, left)
		}
	}
	if groups, err := results.Groups(ctx); err != nil || len(groups) != 0 {
		t.Errorf("%+v (error %v) after closing, want nothing", groups, err)
	}
}
