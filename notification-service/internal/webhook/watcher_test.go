package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
)

// failures answers a Watcher, one look after the other; the last answer stays.
type failures []struct {
	warned []uuid.UUID
	marked int
	err    error
}

func (f *failures) WarnOfFailing(context.Context, time.Duration) ([]uuid.UUID, int, error) {
	now := (*f)[0]
	if len(*f) > 1 {
		*f = (*f)[1:]
	}
	return now.warned, now.marked, now.err
}

// The gauge has the endpoints that fail for long, also while the database is away, and
// follows when they recover. Each is logged when it is marked, and not again.
func TestWatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		store := &failures{{marked: 0}, {warned: []uuid.UUID{id}, marked: 1}, {marked: 1}, {err: errors.New("away")}, {marked: 0}}
		reg, logs := prometheus.NewRegistry(), &bytes.Buffer{}
		w := webhook.NewWatcher(store, 120*time.Hour, reg, zerolog.New(logs))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		var seen []string
		for range 15 { // four waits of 22.5 s at most, and more
			synctest.Wait()
			text := "0"
			if testutil.CollectAndCount(reg, "webhook_endpoints_failing") != 1 {
				t.Fatal("there is no gauge")
			}
			if err := testutil.GatherAndCompare(reg, strings.NewReader(`
				# HELP webhook_endpoints_failing Enabled endpoints that have failed for 60 hours or longer, in the whole database.
				# TYPE webhook_endpoints_failing gauge
				webhook_endpoints_failing 1
			`)); err == nil {
				text = "1"
			}
			if len(seen) == 0 || seen[len(seen)-1] != text {
				seen = append(seen, text)
			}
			<-time.After(8 * time.Second)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := strings.Join(seen, ""); got != "010" {
			t.Errorf("the gauge went %s, want 010", got)
		}
		if n := strings.Count(logs.String(), id.String()); n != 1 {
			t.Errorf("the endpoint is logged %d times, want once:\n%s", n, logs)
		}
	})
}
