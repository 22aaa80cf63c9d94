package deadletter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/deadletter"
)

// Whoever alerts on open dead letters sees how many each queue has, and none once
// they are closed.
func TestGaugeCountsOpen(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	const insert = `
		insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at, state)
		values ('queue.votes', $1, '', '', '{}', '{}', 'permanent', '', '', now(), now(), $2)`
	mustExec(t, pool, insert, "a", "open")
	mustExec(t, pool, insert, "b", "open")
	mustExec(t, pool, insert, "c", "discarded")

	reg := prometheus.NewRegistry()
	gauge := deadletter.NewGauge(store, reg, zerolog.Nop())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() { _ = gauge.Run(ctx) }()
	want := `# HELP dead_letters_open Dead letters that wait for an operator, of all replicas.
# TYPE dead_letters_open gauge
dead_letters_open{queue="queue.votes"} 2
`
	err := errors.New("nothing was gathered")
	for err != nil && ctx.Err() == nil {
		err = testutil.GatherAndCompare(reg, strings.NewReader(want))
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
}
