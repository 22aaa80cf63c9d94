package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/reconciliation"
)

// A notification that somebody deletes from a stream, in its middle or at its head, is named
// by the id that its reader knows, and by nothing else; what retention, erasure and an
// adoption delete is not.
func TestDeletedNotificationsAreNamed(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	results := reconciliation.NewResults(e.pool, reconciliation.ToOperations)
	found := func() []reconciliation.Message {
		t.Helper()
		messages, err := results.Messages(t.Context(), reconciliation.Selection{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return messages
	}

	shared := message(ann.Own(), guestReader.Own())
	mustApply(t, e.DB, oldMessage(year+time.Hour, ann.Own()), shared, message(guestReader.Own()), message(kanari.Own()))
	mustApply(t, e.DB, messages(600, kanari.Own())...)
	mustApply(t, e.DB, messages(5, ann.Own())...)
	age(t, e.pool)
	if err := sweep(t.Context(), e.pool, keepYear); err != nil {
		t.Fatal(err)
	}
	mustExec(t, e.pool, `delete from notifications n using streams s where s.id = n.stream_id and name = $1 and seq = 300`, kanari.Own())
	if messages := found(); len(messages) != 1 {
		t.Fatalf("%+v are named, want one", messages)
	}
	e.erase() // and with it what was named
	adopt(t, e.DB, uuid.NewString())
	if left := count(t, e.pool, `select count(*) from notifications where stream_id = (select id from streams where name = 'user:ann')`); left != 7 {
		t.Fatalf("%d notifications are left, want 7", left)
	}
	if messages := found(); len(messages) != 0 {
		t.Fatalf("%+v are named after what programs delete, want nothing", messages)
	}

	want := make(map[uuid.UUID]bool)
	for _, which := range []string{"seq = last_seq - 3", "seq >= last_seq - 1"} {
		rows, err := e.pool.Query(t.Context(), `delete from notifications n using streams s where s.id = n.stream_id and name = 'user:ann' and `+which+` returning n.id`)
		if err != nil {
			t.Fatal(err)
		}
		var id uuid.UUID
		for rows.Next() {
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			want[id] = true
		}
	}
	messages := found()
	for _, m := range messages {
		if !want[m.ID] || m.Group != "streams" || m.State != reconciliation.Missing || m.Key != "" || m.ReportID != nil || m.ReportVersion != 0 {
			t.Errorf("named as %+v, want the id of one that was deleted, and no more", m)
		}
	}
	if len(messages) != 3 || len(want) != 3 {
		t.Errorf("%d of %d are named, want all 3", len(messages), len(want))
	}
	if groups, err := results.Groups(t.Context()); err != nil || len(groups) != 1 || groups[0].Deleted != 3 {
		t.Errorf("summary is %+v (error %v), want 3", groups, err)
	}
}
