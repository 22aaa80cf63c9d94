package e2e

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// failSQL lets one message in ten fail in each attempt, as a lock does that is not free.
const failSQL = `
create function fail_now_and_then() returns trigger language plpgsql as $$
begin
  if random() < 0.1 then
    raise exception 'now and then' using errcode = '55P03';
  end if;
  return new;
end $$;
create trigger fail_now_and_then before insert on processed_messages for each row execute function fail_now_and_then()`

// Officials move reports to and fro, faster than anybody reads. One message in ten
// fails in each attempt, and two replicas of notification-service and of
// delivery-worker are killed in turn. The last status of each report is the present one
// in the reporter's stream, in the lists of the reporter and of a follower, and at
// another system; and each was there once.
func TestStatusesStayInOrder(t *testing.T) {
	t.Parallel()
	const reports, moves = 24, 6
	c := prepareStack(t)
	for _, p := range []*process{c.notification, c.worker} {
		p.env["RETRY_MAX_ATTEMPTS"], p.env["RETRY_DELAYS"] = "8", "1s,5s"
	}
	c.start()
	secondNotification := newProcess(t, "notification-service", c.notification.env)
	secondNotification.start()
	c.awaitReplica(secondNotification)
	other := openOtherSystem(t)
	other.register(c, c.signIn("Pavel", "operator"))
	secondWorker := newProcess(t, "delivery-worker", c.worker.env)
	secondWorker.log.parts = 1
	secondWorker.start()
	if _, err := c.notificationDB.Exec(t.Context(), failSQL); err != nil {
		t.Fatal(err)
	}

	ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	anas, bens := watch(t, ana), watch(t, ben)
	want := make(map[uuid.UUID]int64) // by report, its version in the end
	var all []client.Report
	for range reports {
		report := file(t, ana, "Dark crossing")
		if err := ben.Insist(t.Context(), http.MethodPut, "/me/follows/"+report.ID.String(), nil, nil); err != nil {
			t.Fatalf("follow: %v", err)
		}
		all = append(all, report)
	}
	awaitMoves := moveToAndFro(t, olga, all, moves, want)
	kills := 0
	for _, p := range []*process{c.worker, c.notification, secondWorker, secondNotification, c.notification} {
		p.kill()
		kills++
		p.start() // which takes so long that the others get what it had
	}
	awaitMoves()
	anas.await(reports * moves)
	bens.await(reports * moves)
	events := other.await(reports * (moves + 1))

	statuses := func(s []sight) []sight {
		return slices.DeleteFunc(s, func(s sight) bool { return s.typ != moved })
	}
	for name, s := range map[string]*screen{"the reporter": anas, "a follower": bens} {
		s.mu.Lock()
		shown := slices.Clone(s.shown)
		s.mu.Unlock()
		inOrder(t, "the stream of "+name, statuses(shown), want, moves)
		listed := s.listed()
		slices.Reverse(listed) // the newest is first
		inOrder(t, "the list of "+name, statuses(listed), want, moves)
	}
	var sent []sight
	filed := make(map[string]bool)
	for _, e := range events {
		if e.Type == moved {
			sent = append(sent, sight{moved, uuid.MustParse(e.Data.ReportID), e.Data.ReportVersion})
			if !filed[e.Data.ReportID] {
				t.Errorf("the other system has a status of %s before its filing", e.Data.ReportID)
			}
		}
		filed[e.Data.ReportID] = filed[e.Data.ReportID] || e.Type == created
	}
	inOrder(t, "the other system", sent, want, moves)
	var waited int
	eventually.True(t, "nothing waits", func() bool {
		return c.notificationDB.QueryRow(t.Context(), `select count(*) from delayed_messages`).Scan(&waited) == nil && waited == 0
	})
	const parked = "the message before this one has not had its effect, it is parked"
	t.Logf("%d processes were killed; messages were parked %d times", kills,
		len(c.notification.log.messages(parked))+len(secondNotification.log.messages(parked)))
}

// moveToAndFro has an official move each of the reports n times, four at once, and notes
// in want the version of each in the end. It returns a function that waits for that.
func moveToAndFro(t *testing.T, official *client.Client, reports []client.Report, n int, want map[uuid.UUID]int64) (wait func()) {
	t.Helper()
	var officials sync.WaitGroup
	var mu sync.Mutex // guards want
	for part := range slices.Chunk(reports, len(reports)/4) {
		officials.Go(func() {
			for _, report := range part {
				for i := range n {
					changed, err := official.SetStatus(t.Context(), report.ID, []string{"in_progress", "resolved"}[i%2], "Because.")
					if err != nil {
						t.Errorf("change status: %v", err)
						return
					}
					mu.Lock()
					want[report.ID] = changed.Version
					mu.Unlock()
				}
			}
		})
	}
	return officials.Wait
}

// inOrder checks that the n statuses of each report were seen once, in the order of their
// versions, and that the last is the one in want.
func inOrder(t *testing.T, where string, seen []sight, want map[uuid.UUID]int64, n int) {
	t.Helper()
	last := make(map[uuid.UUID]int64)
	stale, backwards := 0, 0
	for _, s := range seen {
		if s.version < last[s.report] {
			backwards++
		}
		last[s.report] = s.version
	}
	for report, version := range want {
		if last[report] != version {
			stale++
		}
	}
	t.Logf("%s: %d of %d reports end on a stale status, %d of %d statuses came after later ones", where, stale, len(want), backwards, len(seen))
	if stale+backwards > 0 {
		t.Errorf("%s: %d reports end on a stale status, %d statuses came after later ones; want none", where, stale, backwards)
	}
	if len(seen) != len(want)*n {
		t.Errorf("%s: %d statuses, want %d", where, len(seen), len(want)*n)
	}
}
