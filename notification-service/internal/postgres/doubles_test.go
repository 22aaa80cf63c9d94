package postgres_test

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

// The migration that makes a message one notification removes doubles that exist: the first
// stays, with its read mark, and the numbers of its stream close up, for marks, digests and
// waiting mails, too. Other streams stay as they are.
func TestMigrationRemovesDoubles(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	files, err := migrations.Files(migrations.Notification)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(name string) {
		t.Helper()
		sql, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, pool, string(sql))
	}
	apply("0034_deleted_notifications.down.sql")
	apply("0033_one_index_of_reports.down.sql")
	apply("0032_one_notification.down.sql")

	a, b, c := message(ann.Own(), notification.Officials), message(ann.Own(), notification.Officials), message(ann.Own(), notification.Officials)
	mustApply(t, store, a, b)
	mustExec(t, pool, `delete from processed_messages`)
	mustApply(t, store, again(a)...)
	mustApply(t, store, c)
	mustExec(t, pool, `delete from processed_messages`)
	mustApply(t, store, again(a, b)...) // a b a c a b
	other := message("user:ben")
	mustApply(t, store, other)
	if _, err := store.Streams.View(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	mustExec(t, pool, `update read_marks set seq = 3`) // a b a
	mustExec(t, pool, `insert into notification_reads (reader, stream_id, seq, read) select id, id, n.seq, n.read from streams, (values (2, false), (4, true), (5, true)) as n (seq, read) where name = 'user:ann'`)
	contact := uuid.New()
	mustExec(t, pool, `
		insert into contacts (id, stream_id, address, address_mac, lane, language, zone, state, kinds)
		select $1, id, 'sealed', 'mac', 'ann.example', 'en', 'UTC', 'active', '{}' from streams where name = 'user:ann'`, contact)
	mustExec(t, pool, `insert into digests (stream_id, frequency, at, next_at, sent_seq) select id, 'daily', 0, now(), 6 from streams where name = 'user:ann'`)
	mustExec(t, pool, `
		insert into deliveries (channel, lane, target, message_id, kind, body)
		values ('email', 'ann.example', $1, 'n', 'digest', convert_to('{"after": 3, "to": 6}', 'UTF8')),
		  ('email', 'notices', 'officials', 'n', 'overdue', convert_to('{"after": 0, "to": 5}', 'UTF8'))`, contact.String())
	var before string
	if err := pool.QueryRow(t.Context(), `select string_agg(epoch, ',' order by name) from streams where name <> 'user:ben'`).Scan(&before); err != nil {
		t.Fatal(err)
	}

	apply("0032_one_notification.up.sql")
	apply("0033_one_index_of_reports.up.sql")
	want := []string{a.ID, b.ID, c.ID}
	for stream, want := range map[notification.Stream][]string{ann.Own(): want, notification.Officials: want, "user:ben": {other.ID}} {
		if got := idsOf(t, pool, stream); !slices.Equal(got, want) {
			t.Errorf("%s has\n%v, want\n%v", stream, got, want)
		}
	}
	if view, err := store.Streams.View(t.Context(), ann); err != nil || view.Unread != 1 {
		t.Errorf("%d unread, error %v; want b alone", view.Unread, err)
	}
	for what, n := range map[string]int{
		`select count(*) from streams where position(epoch in '` + before + `') > 0`: 0,
		`select sent_seq from digests`: 3,
		`select count(*) from deliveries where convert_from(body, 'UTF8')::jsonb = '{"after": 2, "to": 3}' and kind = 'digest'`:  1,
		`select count(*) from deliveries where convert_from(body, 'UTF8')::jsonb = '{"after": 0, "to": 3}' and kind = 'overdue'`: 1,
	} {
		if got := count(t, pool, what); got != n {
			t.Errorf("%s: %d, want %d", what, got, n)
		}
	}
}
