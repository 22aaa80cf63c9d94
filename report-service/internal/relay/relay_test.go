package relay_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// Everything arrives once and in order, and its result is recorded. A connection that a
// starved broker ends may have what was not recorded published once more.
func TestRelay(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	rows := newRows(100, 40)
	insertMany(t, pool, rows)

	r := start(t, pool, url)
	arrived.wait(t, rows)
	more := newRows(10, 3)
	insert(t, pool, more...)
	r.Wake(shards.All)
	arrived.wait(t, more)
	waitEmpty(t, pool)
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v, want nil after cancelling", err)
	}
	_, doubled, inverted := arrived.figures()
	if most := int(r.State().Connects-1) * unrecorded; doubled > most || inverted != 0 {
		t.Errorf("%d doubled, %d inverted; want at most %d and none", doubled, inverted, most)
	}
}
