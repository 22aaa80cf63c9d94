package deadletter_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/deadletter"
)

// votes is the queue that most letters of these tests come from.
const votes = "votes"

func newStore(t *testing.T) (*deadletter.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Notification(t)
	return deadletter.NewStore(pool), pool
}

func mustExec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// mustSucceed lets the message called id have its effect.
func mustSucceed(t *testing.T, pool *pgxpool.Pool, id string) {
	t.Helper()
	nothing := consumer.InTx(pool, func(context.Context, pgx.Tx, []consumer.Message) error { return nil })
	if _, err := nothing.Apply(t.Context(), votes, []consumer.Message{{ID: id}}); err != nil {
		t.Fatal(err)
	}
}

// letter returns a dead letter of the queue that failed at a minute.
func letter(queue, id, class string, minute int) deadletter.Letter {
	at := time.Date(2026, 11, 21, 9, minute, 0, 0, time.UTC)
	return deadletter.Letter{
		Queue: queue, MessageID: id, Type: "vote.received", Body: []byte(`{"a":1}`), Headers: []byte(`{}`),
		Class: class, Error: class + " of " + id, Group: class, FirstFailedAt: at, FailedAt: at, Retries: 3, RetryReason: "because",
	}
}

func mustArchive(t *testing.T, store *deadletter.Store, letters ...deadletter.Letter) {
	t.Helper()
	if err := store.Archive(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
}

// entries returns what is selected, oldest first.
func entries(t *testing.T, store *deadletter.Store, s deadletter.Selection) []deadletter.Entry {
	t.Helper()
	list, err := store.Entries(t.Context(), s, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(list)
	return list
}

// A letter that comes twice, because the archiver died between commit and ack,
// is archived once. One that fails again is the same entry, with a death more.
func TestArchive(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	first, again := letter(votes, "a", "timeout", 1), letter(votes, "a", "permanent", 2)
	mustArchive(t, store, first, letter("another queue", "a", "timeout", 1))
	mustArchive(t, store, first)
	mustArchive(t, store, again)
	mustArchive(t, store, first) // an old copy comes last
	list := entries(t, store, deadletter.Selection{Queue: votes})
	if len(list) != 1 {
		t.Fatalf("%d entries, want 1", len(list))
	}
	entry, attempts, err := store.Entry(t.Context(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if entry.Deaths != 2 || entry.Class != "permanent" || !entry.FailedAt.Equal(again.FailedAt) || !entry.FirstFailedAt.Equal(first.FirstFailedAt) {
		t.Errorf("entry %+v, want 2 deaths, the last for being permanent", entry)
	}
	if len(attempts) != 2 || attempts[0].Class != "timeout" || attempts[1].Class != "permanent" || attempts[0].Retries != 3 {
		t.Errorf("attempts %+v, want the timeout and then the permanent one", attempts)
	}
	if _, _, err := store.Entry(t.Context(), 4711); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("an unknown entry: error %v, want ErrNotFound", err)
	}
}

// All fields of a letter are kept: in the entry, or in its attempt.
func TestArchiveKeepsEveryField(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustArchive(t, store, letter(votes, "replayed", "timeout", 1))
	replay := mustReplay(t, store, deadletter.ReplayRequest{Selection: deadletter.Selection{MessageID: "replayed"}})
	l := letter(votes, "a", "timeout", 1)
	l.Type, l.Group, l.Error, l.FailedAt = "type", "group", "error", l.FirstFailedAt.Add(time.Hour)
	l.Properties = deadletter.Properties{ContentType: "application/json", AppID: "app", Timestamp: l.FirstFailedAt}
	l.Headers, l.Replay = []byte(`{"name": "value"}`), &replay.ID
	mustArchive(t, store, l)
	list := entries(t, store, deadletter.Selection{MessageID: "a"})
	if len(list) != 1 {
		t.Fatalf("%d entries, want 1", len(list))
	}
	entry, attempts, err := store.Entry(t.Context(), list[0].ID)
	if err != nil || len(attempts) != 1 {
		t.Fatalf("attempts %+v, error %v; want 1 attempt", attempts, err)
	}
	names := map[string]string{"Replay": "ReplayID"}
	came := reflect.ValueOf(l)
	for i := range came.NumField() {
		name := came.Type().Field(i).Name
		if came.Field(i).IsZero() {
			t.Errorf("this test does not fill Letter.%s", name)
		}
		kept := reflect.ValueOf(entry).FieldByName(cmp.Or(names[name], name))
		if !kept.IsValid() {
			kept = reflect.ValueOf(attempts[0]).FieldByName(name)
		}
		if !kept.IsValid() {
			t.Errorf("neither Entry nor Attempt has Letter.%s", name)
			continue
		}
		if want, got := textOf(t, came.Field(i)), textOf(t, kept); got != want {
			t.Errorf("Letter.%s is kept as %s, want %s", name, got, want)
		}
	}
}

// textOf returns v in a form that two equal values share.
func textOf(t *testing.T, v reflect.Value) string {
	t.Helper()
	if at, ok := v.Interface().(time.Time); ok {
		return at.UTC().String()
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A letter whose message has had its effect is resolved when it arrives.
func TestArchiveOfAHandledMessage(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustSucceed(t, pool, "a")
	mustArchive(t, store, letter(votes, "a", "timeout", 1))
	list := entries(t, store, deadletter.Selection{MessageID: "a"})
	if len(list) != 1 || list[0].State != deadletter.Resolved || list[0].ClosedAt == nil {
		t.Errorf("entries %+v, want a resolved one", list)
	}
}

// A selection picks by all of its fields, in lists, counts and groups alike.
func TestSelection(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	for i := range 3 {
		mustArchive(t, store, letter(votes, fmt.Sprint("timeout", i), "timeout", i))
	}
	about := letter("another queue", "timeout", "timeout", 4)
	about.Body = []byte(`{"report_id":"0198c0de-0000-7000-8000-000000000001","voter_id":"0198c0de-0000-7000-8000-000000000002"}`)
	mustArchive(t, store, letter(votes, "permanent", "permanent", 3), about)
	all := entries(t, store, deadletter.Selection{})
	for _, tt := range []struct {
		name string
		deadletter.Selection
		want int
	}{
		{"everything", deadletter.Selection{}, 5},
		{"a queue", deadletter.Selection{Queue: votes}, 4},
		{"a queue and a class", deadletter.Selection{Queue: votes, Class: "timeout"}, 3},
		{"a group", deadletter.Selection{Group: "timeout"}, 4},
		{"a type", deadletter.Selection{Type: "vote.received"}, 5},
		{"a message", deadletter.Selection{MessageID: "timeout1"}, 1},
		{"ids", deadletter.Selection{IDs: []int64{all[0].ID, all[4].ID, 4711}}, 2},
		{"ids of a queue", deadletter.Selection{IDs: []int64{all[0].ID, all[4].ID}, Queue: votes}, 1},
		{"a state", deadletter.Selection{State: deadletter.Resolved}, 0},
		{"words of an error", deadletter.Selection{Text: "OUT of timeOUT"}, 4},
		{"a wildcard, which is none", deadletter.Selection{Text: "%"}, 0},
		{"a message id as text", deadletter.Selection{Text: "permanent"}, 1},
		{"a number", deadletter.Selection{Text: fmt.Sprint("#", all[3].ID)}, 1},
		{"a report", deadletter.Selection{Text: "0198C0DE-0000-7000-8000-000000000001"}, 1},
		{"a voter, whom the answer masks", deadletter.Selection{Text: "0198c0de-0000-7000-8000-000000000002"}, 0},
		{"a report and its voter", deadletter.Selection{Text: `0198c0de-0000-7000-8000-000000000001","voter_id":"0198c0de-0000-7000-8000-000000000002`}, 0},
		{"from a time on", deadletter.Selection{From: all[3].FailedAt}, 2},
		{"before a time", deadletter.Selection{To: all[3].FailedAt}, 3},
	} {
		if n, err := store.Count(t.Context(), tt.Selection); err != nil || n != tt.want {
			t.Errorf("%s: count %d (error %v), want %d", tt.name, n, err, tt.want)
		}
		if n := len(entries(t, store, tt.Selection)); n != tt.want {
			t.Errorf("%s: %d entries, want %d", tt.name, n, tt.want)
		}
	}
	page, err := store.Entries(t.Context(), deadletter.Selection{}, all[3].ID, 2)
	if err != nil || len(page) != 2 || page[0].ID != all[2].ID || page[1].ID != all[1].ID {
		t.Errorf("the page below the fourth: %+v (error %v), want the third and the second", page, err)
	}
	groups, err := store.Groups(t.Context(), deadletter.Selection{})
	if err != nil || len(groups) != 3 || groups[0].Open != 3 || groups[0].Group != "timeout" || groups[0].Queue != votes ||
		!groups[0].Oldest.Equal(all[0].FailedAt) || !groups[0].Newest.Equal(all[2].FailedAt) || groups[0].Sample != all[2].ID {
		t.Errorf("groups %+v (error %v), want first the three timeouts", groups, err)
	}
}

// Only open dead letters are discarded, and each discard is in the audit.
func TestDiscard(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustArchive(t, store, letter(votes, "a", "timeout", 1), letter(votes, "b", "timeout", 2), letter(votes, "c", "timeout", 3))
	mustExec(t, pool, `update dead_letters set state = 'replaying' where message_id = 'c'`)
	if n, err := store.Discard(t.Context(), "pavel", deadletter.Selection{Queue: votes}, "obsolete"); err != nil || n != 2 {
		t.Errorf("discarded %d (error %v), want the 2 that are open", n, err)
	}
	if _, err := store.Discard(t.Context(), "pavel", deadletter.Selection{Queue: votes}, "again"); !errors.Is(err, deadletter.ErrNothing) {
		t.Errorf("discarding again: error %v, want ErrNothing", err)
	}
	for _, e := range entries(t, store, deadletter.Selection{State: deadletter.Discarded}) {
		if e.CloseReason != "obsolete" || e.ClosedAt == nil {
			t.Errorf("entry %+v, want one closed as obsolete", e)
		}
	}
	stats, err := store.Stats(t.Context())
	if err != nil || len(stats) != 1 || stats[0].Discarded != 2 || stats[0].Replaying != 1 || stats[0].Open != 0 || stats[0].OldestAt != nil {
		t.Errorf("stats %+v (error %v), want 2 discarded and 1 replaying", stats, err)
	}
	if got := actions(t, store); !slices.Equal(got, []string{"pavel discard"}) {
		t.Errorf("audit %v, want the one discard", got)
	}
}

// Many are discarded in portions, each with an entry in the audit, and none that came after
// the beginning.
func TestManyAreDiscardedInPortions(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustArchive(t, store, letter(votes, "a", "timeout", 1), letter("queue.other", "b", "timeout", 2))
	mustExec(t, pool, `
		insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at)
		select queue, 'a' || i, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at
		from dead_letters, generate_series(1, 4100) i where message_id = 'a'`)
	if n, err := store.Discard(t.Context(), "pavel", deadletter.Selection{Queue: votes}, "obsolete"); err != nil || n != 4101 {
		t.Errorf("discarded %d (error %v), want all 4101 of the queue", n, err)
	}
	if got := actions(t, store); !slices.Equal(got, []string{"pavel discard", "pavel discard", "pavel discard"}) {
		t.Errorf("audit %v, want one of each portion", got)
	}
	if left := entries(t, store, deadletter.Selection{State: deadletter.Open}); len(left) != 1 || left[0].MessageID != "b" {
		t.Errorf("open are %+v, want the one of the other queue", left)
	}
}

// Only a dead letter that cannot have its effect twice is open again.
func TestRestore(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	for i, id := range []string{"a", "done", "edited", "old", "again"} {
		mustArchive(t, store, letter(votes, id, "timeout", i+1))
	}
	ids := map[string]int64{}
	for _, e := range entries(t, store, deadletter.Selection{}) {
		ids[e.MessageID] = e.ID
	}
	if _, err := store.Edit(t.Context(), "pavel", ids["edited"], deadletter.Edit{ID: "new", Body: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if err := store.Restore(t.Context(), "pavel", ids["a"], "open"); !errors.Is(err, deadletter.ErrNotDiscarded) {
		t.Errorf("restoring an open one: error %v, want ErrNotDiscarded", err)
	}
	if _, err := store.Discard(t.Context(), "pavel", deadletter.Selection{Queue: votes}, "obsolete"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, pool, `update dead_letters set closed_at = now() - interval '29 days' where message_id = 'old'`)
	mustExec(t, pool, `insert into processed_messages (consumer, message_id) values ('`+votes+`', 'done')`)
	mustArchive(t, store, letter(votes, "again", "timeout", 9))
	for _, tt := range []struct {
		id    string
		want  error
		state deadletter.State
	}{
		{"a", nil, deadletter.Open},
		{"done", nil, deadletter.Resolved},
		{"edited", deadletter.ErrNotDiscarded, deadletter.Discarded},
		{"old", deadletter.ErrNotDiscarded, deadletter.Discarded},
		{"again", deadletter.ErrOpenAgain, deadletter.Discarded},
	} {
		if err := store.Restore(t.Context(), "pavel", ids[tt.id], "a mistake"); !errors.Is(err, tt.want) {
			t.Errorf("restoring %q: error %v, want %v", tt.id, err, tt.want)
		}
		now, _, err := store.Entry(t.Context(), ids[tt.id])
		if err != nil || now.State != tt.state || (now.ClosedAt == nil) != (tt.state == deadletter.Open) {
			t.Errorf("%q is %s, closed at %v (error %v); want %s", tt.id, now.State, now.ClosedAt, err, tt.state)
		}
	}
	if got := actions(t, store); !slices.Equal(got[:2], []string{"pavel restore", "pavel restore"}) {
		t.Errorf("audit %v, want both that were restored first", got)
	}
}

// An edit replaces an open dead letter by one that a replay can send.
func TestEdit(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustArchive(t, store, letter(votes, "a", "permanent", 1))
	old := entries(t, store, deadletter.Selection{})[0]
	edit := deadletter.Edit{ID: "a new id", Body: []byte(`{"a":2}`), Changes: []deadletter.Change{}}
	id, err := store.Edit(t.Context(), "pavel", old.ID, edit)
	if err != nil {
		t.Fatal(err)
	}
	list := entries(t, store, deadletter.Selection{})
	if len(list) != 2 || list[0].State != deadletter.Discarded || list[0].CloseReason != fmt.Sprint("edited as ", id) {
		t.Errorf("entries %+v, want the old one closed", list)
	}
	if child := list[1]; child.ID != id || child.State != deadletter.Open || child.MessageID != edit.ID || string(child.Body) != string(edit.Body) ||
		child.ParentID == nil || *child.ParentID != old.ID || child.Queue != votes || child.Class != "permanent" {
		t.Errorf("the edited entry is %+v", child)
	}
	if _, err := store.Edit(t.Context(), "pavel", old.ID, edit); !errors.Is(err, deadletter.ErrNotOpen) {
		t.Errorf("editing it again: error %v, want ErrNotOpen", err)
	}
	if got := actions(t, store); !slices.Equal(got, []string{"pavel edit"}) {
		t.Errorf("audit %v, want the one edit", got)
	}
}

// actions returns "actor action" of the audit, the latest first.
func actions(t *testing.T, store *deadletter.Store) []string {
	t.Helper()
	log, err := store.AuditLog(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, len(log))
	for i, e := range log {
		list[i] = e.Actor + " " + string(e.Action)
	}
	return list
}

// A closed dead letter does not keep its message from failing again.
func TestArchiveAfterDiscard(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustArchive(t, store, letter(votes, "a", "timeout", 1))
	if _, err := store.Discard(t.Context(), "pavel", deadletter.Selection{}, "obsolete"); err != nil {
		t.Fatal(err)
	}
	mustArchive(t, store, letter(votes, "a", "timeout", 2))
	if states := statesOf(t, pool); !slices.Equal(states, []string{"discarded", "open"}) {
		t.Errorf("states %v, want a discarded and an open one", states)
	}
}

// statesOf returns the states of all dead letters, by id.
func statesOf(t *testing.T, pool *pgxpool.Pool) (states []string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `select array_agg(state order by id) from dead_letters`).Scan(&states); err != nil {
		t.Fatal(err)
	}
	return states
}
