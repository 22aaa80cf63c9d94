package deadletter_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/deadletter"
)

// newStoreWithLetters returns a store with n open dead letters, m0 to m(n-1).
func newStoreWithLetters(t *testing.T, n int) (*deadletter.Store, *pgxpool.Pool) {
	t.Helper()
	store, pool := newStore(t)
	for i := range n {
		mustArchive(t, store, letter(votes, fmt.Sprint("m", i), "timeout", i))
	}
	return store, pool
}

func mustReplay(t *testing.T, store *deadletter.Store, o deadletter.ReplayRequest) deadletter.Replay {
	t.Helper()
	replay, err := store.CreateReplay(t.Context(), "pavel", o)
	if err != nil {
		t.Fatal(err)
	}
	return replay
}

// progress returns "state pending/in flight/resolved/failed".
func progress(t *testing.T, store *deadletter.Store, id uuid.UUID) string {
	t.Helper()
	r, err := store.Replay(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %d/%d/%d/%d", r.State, r.Pending, r.InFlight, r.Resolved, r.Failed)
}

// A dead letter belongs to one replay: what one has taken, the next does not
// find.
func TestCreateReplay(t *testing.T) {
	t.Parallel()
	store, _ := newStoreWithLetters(t, 5)
	selection := deadletter.Selection{Queue: votes}
	first := mustReplay(t, store, deadletter.ReplayRequest{Selection: selection, Limit: 2, PerSecond: 10, Canary: 1})
	second := mustReplay(t, store, deadletter.ReplayRequest{Selection: selection})
	if first.Total != 2 || second.Total != 3 {
		t.Errorf("the replays have %d and %d dead letters, want 2 and 3", first.Total, second.Total)
	}
	if _, err := store.CreateReplay(t.Context(), "pavel", deadletter.ReplayRequest{Selection: selection}); !errors.Is(err, deadletter.ErrNothing) {
		t.Errorf("a third replay: error %v, want ErrNothing", err)
	}
	stored, err := store.Replay(t.Context(), first.ID)
	if err != nil || stored.PerSecond != 10 || stored.Canary != 1 || stored.Total != 2 || stored.Pending != 2 || stored.State != deadletter.Running {
		t.Errorf("the first replay is stored as %+v (error %v)", stored, err)
	}
	if list, err := store.Replays(t.Context(), 10); err != nil || len(list) != 2 || list[0].ID != second.ID {
		t.Errorf("replays %+v (error %v), want the second and the first", list, err)
	}
	if _, err := store.Replay(t.Context(), uuid.New()); !errors.Is(err, deadletter.ErrNoReplay) {
		t.Errorf("an unknown replay: error %v, want ErrNoReplay", err)
	}
	if got := actions(t, store); !slices.Equal(got, []string{"pavel replay", "pavel replay"}) {
		t.Errorf("audit %v, want two replays", got)
	}
}

// A replay has one owner at a time. Another takes over when the lease has
// ended.
func TestClaimReplay(t *testing.T) {
	t.Parallel()
	store, _ := newStoreWithLetters(t, 1)
	a, b := uuid.New(), uuid.New()
	claim := func(owner uuid.UUID, lease time.Duration) bool {
		t.Helper()
		replay, err := store.ClaimReplay(t.Context(), owner, lease)
		if err != nil {
			t.Fatal(err)
		}
		return replay != nil
	}
	if claim(a, time.Hour) {
		t.Error("claimed a replay where there is none")
	}
	replay := mustReplay(t, store, deadletter.ReplayRequest{})
	for _, step := range []struct {
		name  string
		owner uuid.UUID
		lease time.Duration
		want  bool
	}{
		{"a free one", a, time.Hour, true},
		{"one that another owns", b, time.Hour, false},
		{"its own", a, 0, true},
		{"one whose lease has ended", b, time.Hour, true},
		{"one that was taken over", a, time.Hour, false},
	} {
		if got := claim(step.owner, step.lease); got != step.want {
			t.Errorf("claiming %s: %t, want %t", step.name, got, step.want)
		}
	}
	if err := store.ReleaseReplay(t.Context(), replay.ID, a); err != nil || claim(a, time.Hour) {
		t.Errorf("released by another than its owner (error %v)", err)
	}
	if err := store.ReleaseReplay(t.Context(), replay.ID, b); err != nil || !claim(a, time.Hour) {
		t.Errorf("a released one was not claimed (error %v)", err)
	}
}

// The progress of a replay counts what became of its dead letters, also of one
// that came back and was taken by another replay.
func TestReplayProgress(t *testing.T) {
	t.Parallel()
	store, pool := newStoreWithLetters(t, 4)
	replay := mustReplay(t, store, deadletter.ReplayRequest{})
	messages, err := store.PendingMessages(t.Context(), replay.ID, 3)
	if err != nil || len(messages) != 3 || messages[0].MessageID != "m0" || string(messages[0].Body) != `{"a":1}` {
		t.Fatalf("messages %+v (error %v), want the first three", messages, err)
	}
	ids := []int64{messages[0].ID, messages[1].ID, messages[2].ID}
	if err := store.MarkSent(t.Context(), replay.ID, ids); err != nil {
		t.Fatal(err)
	}
	if got, want := progress(t, store, replay.ID), "running 1/3/0/0"; got != want {
		t.Errorf("after sending: %s, want %s", got, want)
	}
	mustSucceed(t, pool, "m0")
	back := letter(votes, "m1", "timeout", 30)
	back.Replay = &replay.ID
	mustArchive(t, store, back) // it failed again
	if got, want := progress(t, store, replay.ID), "running 1/1/1/1"; got != want {
		t.Errorf("after one effect and one return: %s, want %s", got, want)
	}
	if again := mustReplay(t, store, deadletter.ReplayRequest{Selection: deadletter.Selection{MessageID: "m1"}}); again.Total != 1 {
		t.Errorf("the one that came back: %d, want 1", again.Total)
	}
	if got, want := progress(t, store, replay.ID), "running 1/1/1/1"; got != want {
		t.Errorf("after another replay took one: %s, want %s", got, want)
	}
	if err := store.EndReplay(t.Context(), replay.ID, deadletter.Stopped, "the canary failed"); err != nil {
		t.Fatal(err)
	}
	if got, want := progress(t, store, replay.ID), "stopped 0/1/1/1"; got != want {
		t.Errorf("after its end: %s, want %s", got, want)
	}
	if open := entries(t, store, deadletter.Selection{State: deadletter.Open}); len(open) != 1 || open[0].MessageID != "m3" || open[0].ReplayID != nil {
		t.Errorf("open are %+v, want the one that was not sent", open)
	}
}

// An operator pauses, resumes and cancels a replay. One that has ended stays
// as it is.
func TestSteerReplay(t *testing.T) {
	t.Parallel()
	store, _ := newStoreWithLetters(t, 2)
	replay := mustReplay(t, store, deadletter.ReplayRequest{})
	owner := uuid.New()
	for _, step := range []struct {
		state   deadletter.ReplayState
		want    error
		claimed bool
		then    string
	}{
		{deadletter.Paused, nil, false, "paused 2/0/0/0"},
		{deadletter.Running, nil, true, "running 2/0/0/0"},
		{deadletter.Cancelled, nil, false, "cancelled 0/0/0/0"},
		{deadletter.Running, deadletter.ErrEnded, false, "cancelled 0/0/0/0"},
	} {
		if _, err := store.SetReplayState(t.Context(), "pavel", replay.ID, step.state); !errors.Is(err, step.want) {
			t.Errorf("to %s: error %v, want %v", step.state, err, step.want)
		}
		claimed, err := store.ClaimReplay(t.Context(), owner, time.Hour)
		if err != nil || (claimed != nil) != step.claimed {
			t.Errorf("after %s: claimed %v (error %v), want it claimed: %t", step.state, claimed, err, step.claimed)
		}
		if got := progress(t, store, replay.ID); got != step.then {
			t.Errorf("after %s: %s, want %s", step.state, got, step.then)
		}
	}
	if n := len(entries(t, store, deadletter.Selection{State: deadletter.Open})); n != 2 {
		t.Errorf("%d dead letters are open after the cancellation, want 2", n)
	}
	want := []string{"pavel replay_cancelled", "pavel replay_running", "pavel replay_paused", "pavel replay"}
	if got := actions(t, store); !slices.Equal(got, want) {
		t.Errorf("audit %v, want %v", got, want)
	}
}

// A replay of 100,000 dead letters is begun and cancelled by short transactions. Whatever
// dies in between, it has all of them once they are taken, and all are open again at the
// end; while they are being taken, nobody else takes any.
func TestManyAreTakenAndOpenedInPortions(t *testing.T) {
	t.Parallel()
	store, pool := newStoreWithLetters(t, 1)
	const most, many = 1000, 100_000
	mustExec(t, pool, `
		insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at)
		select queue, 'm ' || n, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at
		from dead_letters, generate_series(2, $1) n`, many)
	mustExec(t, pool, `create table before_act (id bigint primary key, state text)`)
	inState := func(state deadletter.State) (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `select count(*) from dead_letters where state = $1`, state).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	wantShort := func(what string, act func() error) {
		t.Helper()
		mustExec(t, pool, `truncate before_act`)
		mustExec(t, pool, `insert into before_act select id, state from dead_letters`)
		if err := act(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var changed int
		err := pool.QueryRow(t.Context(), `select count(*) from dead_letters d join before_act b using (id) where d.state <> b.state`).Scan(&changed)
		if err != nil || changed == 0 || changed > most {
			t.Errorf("%s changes %d dead letters (error %v), want %d at most", what, changed, err, most)
		}
	}
	request := deadletter.ReplayRequest{Selection: deadletter.Selection{Queue: votes}, Canary: 2}
	var replay deadletter.Replay
	wantShort("create", func() error { replay = mustReplay(t, store, request); return nil })
	if replay.Total != many || !replay.Taking {
		t.Errorf("the replay has %d dead letters, taking %v; want %d, and more to take", replay.Total, replay.Taking, many)
	}
	if _, err := store.CreateReplay(t.Context(), "pavel", request); !errors.Is(err, deadletter.ErrTaking) {
		t.Errorf("a second replay at that time: error %v, want ErrTaking", err)
	}
	wantShort("take", func() error { return store.TakePortion(t.Context(), replay.ID) })
	mustExec(t, pool, `update dead_letters set state = 'discarded' where state = 'open' and id % 2 = 0`)
	mustArchive(t, store, letter(votes, "later", "timeout", 1)) // belongs to no replay
	left := inState(deadletter.Open) + inState(deadletter.Replaying) - 1
	owner := uuid.New()
	for {
		claimed, err := store.ClaimReplay(t.Context(), owner, time.Hour)
		if err != nil || claimed == nil {
			t.Fatalf("claimed %v (error %v)", claimed, err)
		}
		if !claimed.Taking {
			if claimed.Total != left || claimed.Pending != left {
				t.Errorf("%d of %d dead letters wait, want %d", claimed.Pending, claimed.Total, left)
			}
			break
		}
		if err := store.TakePortion(t.Context(), replay.ID); err != nil {
			t.Fatal(err)
		}
	}
	if got := inState(deadletter.Open); got != 1 {
		t.Errorf("%d dead letters are open, want the one that came later", got)
	}
	wantShort("cancel", func() error {
		_, err := store.SetReplayState(t.Context(), "pavel", replay.ID, deadletter.Cancelled)
		return err
	})
	wantShort("open", func() error { return store.ReopenPortion(t.Context(), replay.ID) })
	reopenAll(t, store, owner)
	if got := inState(deadletter.Open); got != left+1 {
		t.Errorf("%d dead letters are open, want all %d", got, left+1)
	}
	if r, err := store.Replay(t.Context(), replay.ID); err != nil || r.State != deadletter.Cancelled || r.Reopening || r.Pending != 0 {
		t.Errorf("at the end the replay is %+v (error %v)", r, err)
	}
}

// reopenAll opens what cancelled replays have left to open.
func reopenAll(t *testing.T, store *deadletter.Store, owner uuid.UUID) {
	t.Helper()
	for {
		claimed, err := store.ClaimReplay(t.Context(), owner, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if claimed == nil {
			return
		}
		if err := store.ReopenPortion(t.Context(), claimed.ID); err != nil {
			t.Fatal(err)
		}
	}
}
