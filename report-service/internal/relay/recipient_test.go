package relay_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A row without a recipient is published for the reporter, sealed as any other; one that
// has a recipient keeps it, also where that is nobody. All look alike.
func TestRowWithoutARecipientIsForTheReporter(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	filed, erased := uuid.New(), uuid.New()
	for _, id := range []uuid.UUID{filed, erased} {
		if _, err := pool.Exec(t.Context(), `
			insert into reports (id, title, description, category_id, privacy_level, status, version, created_at, updated_at)
			values ($1, 'Lamp', 'Dark', 2, 'anonymous', 'pending', 1, now(), now())`, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), `insert into reporters (report_id, reporter_id) values ($1, 'ann-id')`, filed); err != nil {
		t.Fatal(err)
	}
	sealed := func(report uuid.UUID, user string) string {
		return fmt.Sprintf(`{%q: %q}`, event.RecipientHeader, testKeys.Seal(report, user))
	}
	tests := []struct {
		name    string
		report  uuid.UUID
		headers string
		want    string
	}{
		{"without", filed, `{"traceparent": "00-1-2-01"}`, "ann-id"},
		{"without, after an erasure", erased, `{"traceparent": "00-1-2-01"}`, ""},
		{"somebody else", filed, sealed(filed, "olga-id"), "olga-id"},
		{"nobody", filed, sealed(filed, ""), ""},
	}
	deliveries := consume(t, url, event.Topology{}.Queue(event.VoteReceivedKey))
	start(t, pool, url)
	size := len(testKeys.Seal(filed, ""))
	for i, tt := range tests { // each is published before the next is written, so that they come in this order
		row := newRow(tt.report, int64(i+1))
		row.headers = tt.headers
		insert(t, pool, row)
		d := next(t, deliveries)
		header, _ := d.Headers[event.RecipientHeader].(string)
		if got, err := testKeys.Open(tt.report, header); err != nil || got != tt.want || d.MessageId != row.id.String() {
			t.Errorf("%s: for %q (error: %v), want %q", tt.name, got, err, tt.want)
		}
		if len(header) != size {
			t.Errorf("%s: a recipient of %d bytes, want %d as of the others", tt.name, len(header), size)
		}
	}
}
