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

	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/consumertest"
	"github.com/cityconnect/cityconnect/notification-service/internal/deadletter"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/event"
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
		err = consumertest.Replay(ctx, os.Getenv("REPLAY_RABBITMQ"), postgres.NewStore(pool), zerolog.Nop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// startReplayer runs a replayer as a process of its own. The second result
// kills it, unless it was told to end before.
func startReplayer(t *testing.T, r *consumertest.Harness) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REPLAY_RABBITMQ="+r.URL, "REPLAY_DATABASE="+r.Pool.Config().ConnString())
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

// A moody store refuses everything while its cause is not mended.
type moody struct {
	consumer.Store
	mended atomic.Bool
}

func (m *moody) Apply(ctx context.Context, queue string, batch []consumer.Message) (consumer.Applied, error) {
	if !m.mended.Load() {
		return consumer.Applied{}, &pgconn.PgError{Code: "23514", ConstraintName: "mood"}
	}
	return m.Store.Apply(ctx, queue, batch)
}

// fail makes n dead letters, and returns the store that made them.
func fail(t *testing.T, r *consumertest.Harness, n int) *moody {
	t.Helper()
	m := &moody{Store: r.Store}
	r.Start(consumertest.WithStore(m), consumertest.WithConfig(func(c *consumer.Config) { c.Prefetch = 200 }))
	r.WaitSubscribed(1)
	r.Publish(r.Votes(n, "alice")...)
	r.EventuallyEqual("open dead letters", n, func() int { return inState(r, deadletter.Open) })
	return m
}

func inState(r *consumertest.Harness, state deadletter.State) int {
	return r.Count(`select count(*) from dead_letters where state = $1`, state)
}

var everyVote = deadletter.ReplayRequest{Selection: deadletter.Selection{Queue: event.Topology{}.Queue(event.VoteReceivedKey)}}

func TestReplayOfTenThousandClickedTwiceAndKilled(t *testing.T) {
	t.Parallel()
	const n = 10_000
	r := consumertest.New(t)
	r.Start(consumertest.WithConfig(func(c *consumer.Config) { c.Prefetch = 200 }))
	r.WaitSubscribed(1)
	archiveMany(t, r, n)

	taken, refused := clickThrice(t, r)
	if taken != n {
		t.Errorf("the requests took %d dead letters, want %d", taken, n)
	}
	kill := startReplayer(t, r)
	r.Eventually("progress", func() string {
		if inState(r, deadletter.Resolved) < n/5 {
			return "none"
		}
		return ""
	})
	kill()
	atKill := inState(r, deadletter.Resolved)
	startReplayer(t, r)
	r.EventuallyEqual("resolved dead letters", n, func() int { return inState(r, deadletter.Resolved) })
	r.EventuallyEqual("replays that run", 0, func() int { return r.Count(`select count(*) from replays where state <> 'done'`) })
	r.CheckStreams(n)
	t.Logf("%d dead letters, requested three times (%d refused), replayer killed at %d: %d resolved, %d effects, %d delivered twice",
		n, refused, atKill, n, r.Effects(), r.Metric("rabbitmq_messages_duplicate_total"))
}

// archiveMany puts n dead letters into the archive, as the archiver does.
func archiveMany(t *testing.T, r *consumertest.Harness, n int) {
	t.Helper()
	letters := make([]deadletter.Letter, n)
	for i := range letters {
		letters[i] = letterOf(r, time.Now())
	}
	for page := range slices.Chunk(letters, 1000) {
		if err := r.Store.Archive(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	}
}

// clickThrice requests the same replay twice at the same moment, and once more.
func clickThrice(t *testing.T, r *consumertest.Harness) (taken, refused int64) {
	t.Helper()
	var total, nothing atomic.Int64
	click := func() {
		replay, err := r.Store.CreateReplay(t.Context(), "operator", everyVote)
		total.Add(int64(replay.Total))
		if errors.Is(err, deadletter.ErrNothing) {
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

func TestCanaryOverAnUnmendedCauseStops(t *testing.T) {
	t.Parallel()
	const n, canary = 100, 5
	r := consumertest.New(t)
	r.StartArchive()
	cause := fail(t, r, n)
	request := everyVote
	request.Canary = canary
	replay := mustReplay(t, r, request)
	replay = waitEnded(t, r, replay.ID)
	// It stops at the first failures that it hears of; the others of the canary may be under way yet.
	if replay.State != deadletter.Stopped || replay.Failed < 1 || replay.Failed > canary || replay.Resolved != 0 {
		t.Errorf("the replay is %s with %d failed and %d resolved, want stopped with 1 to %d failed", replay.State, replay.Failed, replay.Resolved, canary)
	}
	r.EventuallyEqual("open dead letters", n, func() int { return inState(r, deadletter.Open) })
	untouched := r.Count(`select count(*) from dead_letters where deaths = 1 and sent_at is null and replay_id is null`)
	if untouched != n-canary {
		t.Errorf("%d dead letters are untouched, want %d", untouched, n-canary)
	}
	t.Logf("canary of %d over %d dead letters: %q, %d untouched", canary, n, replay.Reason, untouched)

	cause.mended.Store(true)
	replay = waitEnded(t, r, mustReplay(t, r, request).ID)
	if replay.State != deadletter.Done || replay.Resolved != n {
		t.Errorf("after mending the replay is %s with %d resolved, want done with %d", replay.State, replay.Resolved, n)
	}
	r.CheckStreams(n)
}

func mustReplay(t *testing.T, r *consumertest.Harness, o deadletter.ReplayRequest) deadletter.Replay {
	t.Helper()
	replay, err := r.Store.CreateReplay(t.Context(), "operator", o)
	if err != nil {
		t.Fatal(err)
	}
	return replay
}

func waitEnded(t *testing.T, r *consumertest.Harness, id uuid.UUID) (replay deadletter.Replay) {
	t.Helper()
	r.Eventually("replay", func() string {
		var err error
		if replay, err = r.Store.Replay(t.Context(), id); err != nil {
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
	r := consumertest.New(t)
	r.StartArchive()
	cause := fail(t, r, n)
	r.Publish(r.Status("bob"), r.Status("bob")) // for other replays
	r.EventuallyEqual("open dead letters", n+2, func() int { return inState(r, deadletter.Open) })
	cause.mended.Store(true)
	request := everyVote
	request.PerSecond = 20 // slow enough to be caught at it
	replay := mustReplay(t, r, request)
	steer := func(state deadletter.ReplayState) {
		t.Helper()
		if _, err := r.Store.SetReplayState(t.Context(), "operator", replay.ID, state); err != nil {
			t.Fatal(err)
		}
	}
	awaitProgress(r)
	steer(deadletter.Paused)
	checkPaused(t, r, replay.ID)
	steer(deadletter.Running)
	awaitProgress(r)
	steer(deadletter.Cancelled)
	r.EventuallyEqual("dead letters on their way", 0, func() int { return inState(r, deadletter.Replaying) })
	open, resolved := inState(r, deadletter.Open), inState(r, deadletter.Resolved)
	t.Logf("cancelled: %d resolved, %d open again", resolved, open)
	if open == 0 || open+resolved != n+2 {
		t.Errorf("%d open and %d resolved, want some open and %d in all", open, resolved, n+2)
	}
	if _, err := r.Store.SetReplayState(t.Context(), "operator", replay.ID, deadletter.Running); !errors.Is(err, deadletter.ErrEnded) {
		t.Errorf("resuming a cancelled replay: %v, want ErrEnded", err)
	}
	r.CheckStreams(resolved)
}

// awaitProgress waits until more is resolved than was.
func awaitProgress(r *consumertest.Harness) {
	before := inState(r, deadletter.Resolved)
	r.Eventually("progress", func() string {
		if inState(r, deadletter.Resolved) == before {
			return "none"
		}
		return ""
	})
}

// checkPaused lets other replays run from beginning to end. The first ends
// after what was being sent at the pause; during the second the paused one
// must not get on.
func checkPaused(t *testing.T, r *consumertest.Harness, id uuid.UUID) {
	t.Helper()
	other := deadletter.ReplayRequest{Selection: deadletter.Selection{Queue: r.Topology.Queue(event.StatusUpdatedKey)}, Limit: 1}
	pendingAfterAnother := func() int {
		waitEnded(t, r, mustReplay(t, r, other).ID)
		replay, err := r.Store.Replay(t.Context(), id)
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
