package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/upkeep"
)

// A script answers Upkeep by its errors first, then tells that more is left,
// and then that nothing is.
type script struct {
	errors []error
	more   int64 // that many calls leave something to do
	calls  atomic.Int64
}

func (s *script) Upkeep(context.Context) (bool, error) {
	n := s.calls.Add(1) - int64(len(s.errors))
	if n <= 0 {
		return false, s.errors[len(s.errors)-1+int(n)]
	}
	return n <= s.more, nil
}

// A witness notes what a store tells.
type witness struct {
	upkeep.Store
	left int           // how often something was left
	idle chan struct{} // closed when nothing is
}

func (w *witness) Upkeep(ctx context.Context) (bool, error) {
	more, err := w.Store.Upkeep(ctx)
	if more {
		w.left++
	} else {
		close(w.idle)
	}
	return more, err
}

// run runs upkeep in the background and returns what ends it.
func run(t *testing.T, s upkeep.Store, log zerolog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := upkeep.Run(ctx, s, log); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return func() { cancel(); running.Wait() }
}

func TestWhatIsLeftIsDoneAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{more: 3}
		stop := run(t, s, zerolog.Nop())
		synctest.Wait()
		if n := s.calls.Load(); n != 4 {
			t.Errorf("%d calls before the first pause, want 4: three that leave something, and one that does not", n)
		}
		<-time.After(8 * time.Minute) // longer than any pause
		synctest.Wait()
		if n := s.calls.Load(); n < 5 || n > 7 {
			t.Errorf("%d calls after 8 minutes, want another every 2.5 to 7.5 minutes", n)
		}
		stop()
	})
}

// A failure is told, waits for the next turn, and ends nothing.
func TestFailureIsToldAndTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &script{errors: []error{errors.New("secret-canary")}}
		stop := run(t, s, zerolog.New(&log))
		synctest.Wait()
		if n := s.calls.Load(); n != 1 || !bytes.Contains(log.Bytes(), []byte("upkeep does not get on")) || bytes.Contains(log.Bytes(), []byte("secret-canary")) {
			t.Errorf("after %d calls the log has %q, want one call, told without the error's text", n, log.String())
		}
		<-time.After(8 * time.Minute) // longer than any pause
		synctest.Wait()
		if s.calls.Load() < 2 {
			t.Error("not tried again")
		}
		stop()
	})
}

const batch = 5000

// keepers are statements that make what is to be kept and what is to be
// cleaned: each row says by its name which.
var keepers = []string{
	`insert into processed_messages (consumer, message_id, processed_at) values
	  ('q', 'keep', now() - interval '29 days'), ('q', 'keep too', now())`,
	`insert into processed_messages (consumer, message_id, processed_at)
	  select 'q', 'clean ' || n, now() - interval '31 days' from generate_series(1, 2 * 5000 + 1) n`,
	`insert into message_starts (queue, message_id, starts, started_at) values
	  ('q', 'keep', 1, now() - interval '29 days'), ('q', 'clean', 1, now() - interval '31 days')`,
	`insert into replays (id, selection, state, total, rate_per_s, canary, reason, ended_at) values
	  ('00000000-0000-0000-0000-000000000001', '{}', 'done', 1, 0, 0, 'keep: a letter is its', now() - interval '91 days'),
	  ('00000000-0000-0000-0000-000000000002', '{}', 'done', 1, 0, 0, 'keep', now() - interval '89 days'),
	  ('00000000-0000-0000-0000-000000000003', '{}', 'running', 1, 0, 0, 'keep: runs', null),
	  ('00000000-0000-0000-0000-000000000004', '{}', 'done', 1, 0, 0, 'clean', now() - interval '91 days')`,
	`insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group,
	    first_failed_at, failed_at, state, closed_at, replay_id, sent_at)
	  select 'q', name, '', '', '{}', '{}', '', '', '', now(), now(), state, now() - closed, replay::uuid, now() - sent
	  from (values
	    ('keep discarded', 'discarded', interval '89 days', null, null),
	    ('clean discarded', 'discarded', interval '91 days', null, null),
	    ('keep open', 'open', null, null, null),
	    ('keep too', 'open', null, null, null), -- had its effect after all
	    ('keep under way', 'replaying', null, '00000000-0000-0000-0000-000000000003', interval '2 hours'),
	    ('keep just sent', 'replaying', null, '00000000-0000-0000-0000-000000000002', interval '59 minutes'),
	    ('keep lost', 'replaying', null, '00000000-0000-0000-0000-000000000001', interval '61 minutes')
	  ) as l (name, state, closed, replay, sent)`,
}

func TestWhatIsKeptAndWhatIsCleaned(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	for _, sql := range keepers {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	s := &witness{Store: postgres.NewStore(pool), idle: make(chan struct{})}
	stop := run(t, s, zerolog.Nop())
	select {
	case <-s.idle:
	case <-time.After(2 * time.Minute):
		t.Fatal("upkeep does not come to an end")
	}
	stop()
	if s.left != 2 {
		t.Errorf("%d pieces left something, want 2: pieces of %d of %d rows", s.left, batch, 2*batch+1)
	}
	for _, q := range []struct {
		what, sql string
		want      int
	}{
		{"handled messages to clean", `select count(*) from processed_messages where message_id like 'clean%'`, 0},
		{"handled messages to keep", `select count(*) from processed_messages where message_id like 'keep%'`, 2},
		{"starts to clean", `select count(*) from message_starts where message_id like 'clean%'`, 0},
		{"starts to keep", `select count(*) from message_starts where message_id like 'keep%'`, 1},
		{"replays to clean", `select count(*) from replays where reason like 'clean%'`, 0},
		{"replays to keep", `select count(*) from replays where reason like 'keep%'`, 3},
		{"dead letters to clean", `select count(*) from dead_letters where message_id like 'clean%'`, 0},
		{"dead letters to keep", `select count(*) from dead_letters where message_id like 'keep%'`, 6},
		{"letters that succeeded", `select count(*) from dead_letters where message_id = 'keep too' and state = 'resolved'`, 1},
		{"lost letters that are open", `select count(*) from dead_letters where message_id = 'keep lost' and state = 'open'`, 1},
		{"letters under way", `select count(*) from dead_letters where state = 'replaying'`, 2},
	} {
		if got := count(t, pool, q.sql); got != q.want {
			t.Errorf("%s: %d, want %d", q.what, got, q.want)
		}
	}
}

func count(t *testing.T, pool *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
