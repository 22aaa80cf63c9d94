package postgres_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
)

// People get everything that is held about them, and nobody else's name. A table with
// something about a person is in their data, or is left out for a reason.
func TestOwnData(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	e.live()
	mustExec(t, e.pool, `insert into follows (stream_id, report_id) select id, gen_random_uuid() from streams where name like 'user:%'`)
	mustExec(t, e.pool, `
		insert into push_subscriptions (id, stream_id, endpoint, endpoint_mac, keys, lane, language, user_agent)
		select gen_random_uuid(), id, 'sealed', convert_to(name, 'utf8'), 'sealed', 'push.test', 'id', 'Firefox of ' || name from streams where name like 'user:%'`)
	read := func(userID string) (string, map[string][]json.RawMessage) {
		t.Helper()
		answer, err := postgres.OwnData(e.pool)(t.Context(), userID)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), answer.Data
	}
	text, data := read(kanari.UserID)
	for section, n := range map[string]int{
		"notifications": 5, "read": 3, "follows": 1, "contact": 1, "codes": 1, "digests": 1, "mail_consents": 1,
		"devices": 1, "push_preferences": 0, "deliveries": 1, "operations": 2,
	} {
		if len(data[section]) != n {
			t.Errorf("%s has %d rows, want %d: %s", section, len(data[section]), n, data[section])
		}
	}
	for _, other := range []string{ann.UserID + "@", string(ann.Own()), "olga", "pavel"} {
		if strings.Contains(text, other) {
			t.Errorf("kanari's data names %s: %s", other, text)
		}
	}
	known := map[string]bool{
		"streams": true, "contacts": true, "push_subscriptions": true, "contact_codes": true, "operations_audit": true, "dead_letter_notes": true,
		"deliveries": true, "delivery_attempts": true, // what was written to the address, which the contact has
		"unsubscribe_tokens": true, "dead_letters": true, "delayed_messages": true, // go by themselves
		"notifications": true, // in the officials' stream: questions, which report-service has
	}
	for table, canaries := range e.tracesIn() {
		if !known[table] {
			t.Errorf("table %s has %v, and own data has nothing of it", table, canaries)
		}
	}
	if _, data := read("nobody"); len(data) != 12 || len(data["notifications"]) != 0 {
		t.Errorf("nobody has %v, want 12 empty lists", data)
	}
}
