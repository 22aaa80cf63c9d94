package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

const day = 24 * time.Hour

// A report that was closed long ago loses the history between its filing and its end,
// and who made it; reports that are open, or were closed lately, keep all.
func TestRetentionOfHistories(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	move := func(id report.Filing, to ...report.Status) {
		for _, s := range to {
			if _, err := f.Move(t.Context(), id.ID, report.Move{To: s, By: "olga-id", Note: "because"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	old, open, young := f.file(ann, draft(report.Public)), f.file(ann, draft(report.Public)), f.file(bob, draft(report.Anonymous))
	move(old, report.InProgress, report.Pending, report.InProgress, report.Resolved)
	move(open, report.InProgress, report.Pending, report.InProgress)
	move(young, report.InProgress, report.Resolved)
	for _, r := range []report.Filing{old, open, young} {
		if err := f.workbench.AddNote(t.Context(), r.ID, "seen", olga); err != nil {
			t.Fatal(err)
		}
	}
	f.exec(`insert into bulk_moves (at, official_id, status, note, reports)
		select now() - n * interval '1 day', 'olga', 'resolved', '', '{}' from generate_series(1, 2000) n`)
	f.exec(`insert into queue_views (official_id, position, name, filters, used_at)
		select case when n < 3 then 'olga' else 'oskar' end, n, 'v' || n, '', now() - n * interval '300 days' from generate_series(1, 4) n`)
	f.exec(`update report_acts set at = at - interval '800 days'`)
	f.exec(`update status_history set changed_at = changed_at - interval '800 days'`)
	f.exec(`update reports set updated_at = updated_at - interval '800 days' where id <> '` + young.ID.String() + `'`)
	f.exec(`insert into outbox_audit (at, actor, action, message_id, routing_key)
		select now() - n * interval '1 day', 'pavel-id', 'retry', gen_random_uuid(), 'x' from generate_series(3000, 1, -1) n`)
	f.exec(`insert into category_audit (at, actor, added, changed, retired, moved)
		select now() - n * interval '1 day', 'pavel-id', 0, 1, 0, false from unnest(array[1, 800]) n`)
	f.exec(`insert into settings_audit (at, actor, actor_name, setting, detail)
		select now() - n * interval '1 day', 'pavel-id', 'Pavel', 'calendar', '{}' from unnest(array[1, 800]) n`)

	metrics := prometheus.NewRegistry()
	keep := upkeep.Retention{History: retention.Period(730 * day), Audit: retention.Period(730 * day)}
	if err := scheduletest.Run(t.Context(), f.pool, retention.Job(keep.Tasks(), metrics)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what   string
		report report.Filing
		want   []report.Status
		named  int
	}{
		{"closed long ago", old, []report.Status{report.Pending, report.Resolved}, 0},
		{"open", open, []report.Status{report.Pending, report.InProgress, report.Pending, report.InProgress}, 3},
		{"closed lately", young, []report.Status{report.Pending, report.InProgress, report.Resolved}, 2},
	} {
		history, err := f.History(t.Context(), tt.report.ID, report.User{})
		if err != nil {
			t.Fatal(err)
		}
		var got []report.Status
		for _, c := range history {
			got = append(got, c.To)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: the history is %v, want %v", tt.what, got, tt.want)
		}
		if n := f.number(`select count(*) from status_history where changed_by is not null and report_id = $1`, tt.report.ID); n != tt.named {
			t.Errorf("%s: %d entries name the official, want %d", tt.what, n, tt.named)
		}
	}
	if n := f.number(`select count(*) from report_acts where report_id <> $1`, old.ID); n != 2 || f.number(`select count(*) from report_acts`) != 2 {
		t.Errorf("%d acts on open and young reports are left, want both and no other", n)
	}
	for table, want := range map[string]int{"outbox_audit": 729, "bulk_moves": 729, "category_audit": 1, "settings_audit": 1} {
		if n := f.number(`select count(*) from ` + table); n != want {
			t.Errorf("%d rows of %s are left, want the %d of 730 days", n, table, want)
		}
	}
	if n := f.number(`select count(*) from queue_views where official_id = 'olga'`); n != 2 || f.number(`select count(*) from queue_views`) != 2 {
		t.Errorf("%d views are left to olga, want both and nobody else's", n)
	}
	if got, err := testutil.GatherAndCount(metrics, "retention_removed_total"); err != nil || got != 17 {
		t.Errorf("%d kinds are counted (error %v), want 17", got, err)
	}
}

// Data that is kept for ever is not searched for.
func TestRetentionNever(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`insert into outbox_audit (at, actor, action, message_id, routing_key)
		values (now() - interval '30 years', 'pavel-id', 'retry', gen_random_uuid(), 'x')`)
	if err := scheduletest.Run(t.Context(), f.pool, retention.Job(upkeep.Retention{}.Tasks(), prometheus.NewRegistry())); err != nil {
		t.Fatal(err)
	}
	if n := f.number(`select count(*) from outbox_audit`); n != 1 {
		t.Errorf("%d audits are left, want all", n)
	}
}

// number returns the number that sql selects.
func (f *fixture) number(sql string, args ...any) (n int) {
	f.t.Helper()
	if err := f.pool.QueryRow(f.t.Context(), sql, args...).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}
