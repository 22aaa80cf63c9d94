package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/short"
)

// TestMain lets the test binary be a replayer that can be killed.
func TestMain(m *testing.M) {
	if os.Getenv("REPLAY_DATABASE") == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("REPLAY_DATABASE"))
	if err == nil {
		err = consumertest.Replay(ctx, os.Getenv("REPLAY_RABBITMQ"), deadletter.NewStore(pool), zerolog.Nop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// startReplayer runs a replayer as a process of its own. The second result
// kills it, unless it was stopped before.
func startReplayer(t *testing.T, h *consumertest.Harness) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REPLAY_RABBITMQ="+h.URL, "REPLAY_DATABASE="+h.Pool.Config().ConnString())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	return kill
}

// A refusingEffect refuses everything until it is repaired.
type refusingEffect struct {
	consumer.Effect
	repaired atomic.Bool
}

func (m *refusingEffect) Apply(ctx context.Context, queue string, batch []consumer.Message) (int, error) {
	if !m.repaired.Load() {
		return 0, &pgconn.PgError{Code: "23514", ConstraintName: "mood"}
	}
	return m.Effect.Apply(ctx, queue, batch)
}

// fail makes n dead letters, and returns the store that made them.
func fail(t *testing.T, h *consumertest.Harness, n int) *refusingEffect {
	t.Helper()
	m := &refusingEffect{Effect: consumertest.Effect(h.Pool)}
	h.Start(consumertest.WithEffect(m), consumertest.WithConfig(func(c *consumer.Config) { c.Prefetch = 200 }))
	h.WaitSubscribed(1)
	h.Publish(h.Votes(n, "alice")...)
	h.EventuallyEqual("open dead letters", n, func() int { return inState(h, deadletter.Open) })
	return m
}

func inState(h *consumertest.Harness, state deadletter.State) int {
	return h.Count(`select count(*) from dead_letters where state = $1`, state)
}

var everyVote = deadletter.ReplayRequest{Selection: deadletter.Selection{Queue: event.Topology{}.Queue(event.VoteReceivedKey)}}

func TestReplayOfManyClickedTwiceAndKilled(t *testing.T) {
	t.Parallel()
	n := short.Count(1_000, 10_000)
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start(consumertest.WithConfig(func(c *consumer.Config) { c.Prefetch = 200 }))
	h.WaitSubscribed(1)
	archiveMany(t, h, n)

	taken, refused := clickThrice(t, h)
	if taken != int64(n) {
		t.Errorf("the requests took %d dead letters, want %d", taken, n)
	}
	kill := startReplayer(t, h)
	h.Eventually("progress", func() string {
		if inState(h, deadletter.Resolved) < n/5 {
			return "none"
		}
		return ""
	})
	kill()
	atKill := inState(h, deadletter.Resolved)
	startReplayer(t, h)
	h.EventuallyEqual("resolved dead letters", n, func() int { return inState(h, deadletter.Resolved) })
	h.EventuallyEqual("replays that run", 0, func() int { return h.Count(`select count(*) from replays where state <> 'done'`) })
	h.CheckEffects(n)
	t.Logf("%d dead letters, requested three times (%d refused), replayer killed at %d: %d resolved, %d effects, %d delivered twice",
		n, refused, atKill, n, h.Effects(), h.Metric("consumer_messages_duplicate_total"))
}

// archiveMany puts n dead letters into the archive, as the archiver does.
func archiveMany(t *testing.T, h *consumertest.Harness, n int) {
	t.Helper()
	letters := make([]deadletter.Letter, n)
	for i := range letters {
		letters[i] = letterOf(h, time.Now())
	}
	for page := range slices.Chunk(letters, 1000) {
		if err := h.Letters.Archive(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	}
}

// clickThrice requests the same replay twice at the same moment, and once more.
func clickThrice(t *testing.T, h *consumertest.Harness) (taken, refused int64) {
	t.Helper()
	var total, nothing atomic.Int64
	click := func() {
		replay, err := h.Letters.CreateReplay(t.Context(), "operator", everyVote)
		total.Add(int64(replay.Total))
		if errors.Is(err, deadletter.ErrNothing) || errors.Is(err, deadletter.ErrTaking) {
			nothing.Add(1)
		} else if err != nil {
			t.Errorf("create replay: %v", err)
		}
	}
	var clicks sync.WaitGroup
	clicks.Go(click)
	clicks.Go(click)
	clicks.Wait()
	click()
	return total.Load(), nothing.Load()
}

func TestCanaryStopsWhileTheCauseIsThere(t *testing.T) {
	t.Parallel()
	const n, canary = 100, 5
	h := consumertest.New(t, pgtest.Notification(t))
	h.StartArchive()
	cause := fail(t, h, n)
	request := everyVote
	request.Canary = canary
	replay := mustReplay(t, h.Letters, request)
	replay = waitEnded(t, h, replay.ID)
	// It stops at the first failures that it hears of; the others of the canary may be under way yet.
	if replay.State != deadletter.Stopped || replay.Failed < 1 || replay.Failed > canary || replay.Resolved != 0 {
		t.Errorf("the replay is %s with %d failed and %d resolved, want stopped with 1 to %d failed", replay.State, replay.Failed, replay.Resolved, canary)
	}
	h.EventuallyEqual("open dead letters", n, func() int { return inState(h, deadletter.Open) })
	untouched := h.Count(`select count(*) from dead_letters where deaths = 1 and sent_at is null and replay_id is null`)
	if untouched != n-canary {
		t.Errorf("%d dead letters are untouched, want %d", untouched, n-canary)
	}
	t.Logf("canary of %d over %d dead letters: %q, %d untouched", canary, n, replay.Reason, untouched)

	cause.repaired.Store(true)
	replay = waitEnded(t, h, mustReplay(t, h.Letters, request).ID)
	if replay.State != deadletter.Done || replay.Resolved != n {
		t.Errorf("after the repair the replay is %s with %d resolved, want done with %d", replay.State, replay.Resolved, n)
	}
	h.CheckEffects(n)
}

func waitEnded(t *testing.T, h *consumertest.Harness, id uuid.UUID) (replay deadletter.Replay) {
	t.Helper()
	h.Eventually("replay", func() string {
		var err error
		if replay, err = h.Letters.Replay(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		ended := []deadletter.ReplayState{deadletter.Done, deadletter.Stopped, deadletter.Cancelled}
		if slices.Contains(ended, replay.State) {
			return ""
		}
		return fmt.Sprintf("is %s: %+v", replay.State, replay.Progress)
	})
	return replay
}

func TestReplayIsPausedResumedAndCancelled(t *testing.T) {
	t.Parallel()
	const n = 60
	h := consumertest.New(t, pgtest.Notification(t))
	h.StartArchive()
	cause := fail(t, h, n)
	h.Publish(h.Status("bob"), h.Status("bob")) // for other replays
	h.EventuallyEqual("open dead letters", n+2, func() int { return inState(h, deadletter.Open) })
	cause.repaired.Store(true)
	request := everyVote
	request.PerSecond = 20 // slow enough to be caught at it
	replay := mustReplay(t, h.Letters, request)
	steer := func(state deadletter.ReplayState) {
		t.Helper()
		if _, err := h.Letters.SetReplayState(t.Context(), "operator", replay.ID, state); err != nil {
			t.Fatal(err)
		}
	}
	awaitProgress(h)
	steer(deadletter.Paused)
	checkPaused(t, h, replay.ID)
	steer(deadletter.Running)
	awaitProgress(h)
	steer(deadletter.Cancelled)
	h.EventuallyEqual("dead letters on their way", 0, func() int { return inState(h, deadletter.Replaying) })
	// A message that was being sent may have its effect after the end: each number is
	// of one moment.
	open := inState(h, deadletter.Open)
	t.Logf("cancelled: about %d are open again", open)
	if all := h.Count(`select count(*) from dead_letters where state in ('open', 'resolved')`); open == 0 || all != n+2 {
		t.Errorf("%d are open, %d open or resolved, want some and %d", open, all, n+2)
	}
	if _, err := h.Letters.SetReplayState(t.Context(), "operator", replay.ID, deadletter.Running); !errors.Is(err, deadletter.ErrEnded) {
		t.Errorf("resuming a cancelled replay: %v, want ErrEnded", err)
	}
	more := h.Count(`select (select count(*) from effects) - (select count(*) from dead_letters where state = 'resolved')`)
	if more != 0 {
		t.Errorf("%d more effects than dead letters that are resolved, want as many", more)
	}
}

// awaitProgress waits until more is resolved than was.
func awaitProgress(h *consumertest.Harness) {
	before := inState(h, deadletter.Resolved)
	h.Eventually("progress", func() string {
		if inState(h, deadletter.Resolved) == before {
			return "none"
		}
		return ""
	})
}

// checkPaused lets other replays run from beginning to end. The first ends
// after what was being sent at the pause; during the second the paused one
// must not get on.
func checkPaused(t *testing.T, h *consumertest.Harness, id uuid.UUID) {
	t.Helper()
	other := deadletter.ReplayRequest{Selection: deadletter.Selection{Queue: h.Topology.Queue(event.StatusUpdatedKey)}, Limit: 1}
	pendingAfterAnother := func() int {
		waitEnded(t, h, mustReplay(t, h.Letters, other).ID)
		replay, err := h.Letters.Replay(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return replay.Pending
	}
	before, after := pendingAfterAnother(), pendingAfterAnother()
	if before == 0 || after != before {
		t.Errorf("%d were pending in the paused replay, and later %d", before, after)
	}
}

// A replay waits for longer than all retries of a dead letter take, whatever delays are
// configured.
func TestReplayOutlastsRetries(t *testing.T) {
	t.Parallel()
	longest := consumer.Defaults()
	longest.MaxAttempts, longest.Delays = 20, []time.Duration{30 * time.Second}
	another, slower := longest, longest
	another.MaxAttempts++
	slower.Delays = []time.Duration{31 * time.Second}
	if len(longest.Validate()) > 0 || len(another.Validate()) == 0 || len(slower.Validate()) == 0 {
		t.Fatalf("%d attempts with delays of %s are not the longest schedule that may be configured", longest.MaxAttempts, longest.Delays)
	}
	var sum time.Duration
	for _, delay := range longest.RetrySchedule() {
		sum += delay
	}
	if sum >= deadletter.SettleTimeout {
		t.Errorf("retries may take %s, and a replay waits %s", sum, deadletter.SettleTimeout)
	}
}
