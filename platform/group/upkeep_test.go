package group_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/group"
)

// oldRows inserts rows to be kept and rows to be removed. The name of each row
// says which.
var oldRows = []string{
	`insert into processed_messages (consumer, message_id, processed_at) values
	  ('q', 'keep', now() - interval '29 days'), ('q', 'keep too', now())`,
	`insert into processed_messages (consumer, message_id, processed_at)
	  select 'q', 'remove ' || n, now() - interval '31 days' from generate_series(1, 2 * 5000 + 1) n`,
	`insert into message_starts (queue, message_id, starts, started_at) values
	  ('q', 'keep', 1, now() - interval '29 days'), ('q', 'remove', 1, now() - interval '31 days')`,
	`insert into replays (id, selection, state, total, rate_per_s, canary, reason, ended_at) values
	  ('00000000-0000-0000-0000-000000000001', '{}', 'done', 1, 0, 0, 'keep: a letter is its', now() - interval '91 days'),
	  ('00000000-0000-0000-0000-000000000002', '{}', 'done', 1, 0, 0, 'keep', now() - interval '89 days'),
	  ('00000000-0000-0000-0000-000000000003', '{}', 'running', 1, 0, 0, 'keep: runs', null),
	  ('00000000-0000-0000-0000-000000000004', '{}', 'done', 1, 0, 0, 'remove', now() - interval '91 days')`,
	`insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group,
	    first_failed_at, failed_at, state, closed_at, replay_id, sent_at)
	  select 'q', name, '', '', '{}', '{}', '', '', '', now(), now(), state, now() - closed, replay::uuid, now() - sent
	  from (values
	    ('keep discarded', 'discarded', interval '89 days', null, null),
	    ('remove discarded', 'discarded', interval '91 days', null, null),
	    ('keep open', 'open', null, null, null),
	    ('keep too', 'open', null, null, null), -- had its effect after all
	    ('keep under way', 'replaying', null, '00000000-0000-0000-0000-000000000003', interval '2 hours'),
	    ('keep just sent', 'replaying', null, '00000000-0000-0000-0000-000000000002', interval '59 minutes'),
	    ('keep lost', 'replaying', null, '00000000-0000-0000-0000-000000000001', interval '61 minutes')
	  ) as l (name, state, closed, replay, sent)`,
}

// notes are those to be kept and to be removed, of the letters' group and of another.
const notes = `insert into dead_letter_notes (queue, error_class, error_group, text, author, written_at) values
	('q', '', '', 'keep: letters are left', '', now() - interval '91 days'), ('q', '', 'gone', 'keep', '', now() - interval '89 days'),
	('q', '', 'long gone', 'remove', '', now() - interval '91 days')`

// Rows that are old enough are removed, in pieces, and no others.
func TestUpkeep(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	for _, sql := range append(oldRows, notes) {
		mustExec(t, pool, sql)
	}
	pieces := 0
	for more := true; more; pieces++ {
		var err error
		if more, err = group.Upkeep(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	if pieces != 3 {
		t.Errorf("cleaned in %d pieces, want 3: 5,000, 5,000 and 1 row", pieces)
	}
	for _, q := range []struct {
		what, sql string
		want      int
	}{
		{"handled messages to remove", `select count(*) from processed_messages where message_id like 'remove%'`, 0},
		{"handled messages to keep", `select count(*) from processed_messages where message_id like 'keep%'`, 2},
		{"starts to remove", `select count(*) from message_starts where message_id like 'remove%'`, 0},
		{"starts to keep", `select count(*) from message_starts where message_id like 'keep%'`, 1},
		{"replays to remove", `select count(*) from replays where reason like 'remove%'`, 0},
		{"replays to keep", `select count(*) from replays where reason like 'keep%'`, 3},
		{"dead letters to remove", `select count(*) from dead_letters where message_id like 'remove%'`, 0},
		{"dead letters to keep", `select count(*) from dead_letters where message_id like 'keep%'`, 6},
		{"notes to remove", `select count(*) from dead_letter_notes where text like 'remove%'`, 0},
		{"notes to keep", `select count(*) from dead_letter_notes where text like 'keep%'`, 2},
		{"letters that succeeded", `select count(*) from dead_letters where message_id = 'keep too' and state = 'resolved'`, 1},
		{"lost letters that are open", `select count(*) from dead_letters where message_id = 'keep lost' and state = 'open'`, 1},
		{"letters under way", `select count(*) from dead_letters where state = 'replaying'`, 2},
	} {
		if got := count(t, pool, q.sql); got != q.want {
			t.Errorf("%s: %d, want %d", q.what, got, q.want)
		}
	}
}

func mustExec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
