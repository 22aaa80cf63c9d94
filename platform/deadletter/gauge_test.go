package deadletter_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// The gauge has the number of open dead letters of each queue, and zero once they are
// closed.
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
	go func() { _ = gauge.Run(t.Context()) }()
	want := `# HELP dead_letters_open Dead letters that wait for an operator, of all replicas.
# TYPE dead_letters_open gauge
dead_letters_open{queue="queue.votes"} 2
`
	eventually.True(t, "two are open", func() bool {
		return testutil.GatherAndCompare(reg, strings.NewReader(want)) == nil
	})
}
