package postgres_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
)

// Once a reporter has hidden the name, dead letters and delayed messages have it no
// more, and notifications from before, as well as those of messages that come late, are
// treated as about an anonymous report.
func TestNameHidden(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	z := zebra(uuid.New())
	public := func(m event.Message) postgres.Message {
		m.About().ReporterID = "ann"
		return of(m)
	}
	mustApply(t, store, public(z.move(2)))
	body := `{"report_id":"` + uuid.UUID(z).String() + `","reporter_id":"ann","reporter_name":"Quokka","privacy_level":"public"}`
	mustExec(t, pool, `insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at, state)
		values ('queue.report_created', 'm1', '', convert_to($1, 'UTF8'), '{}', '{}', '', '', '', now(), now(), 'open')`, body)
	mustExec(t, pool, `insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
		values ('queue.report_created', 'm2', 'report.created', now() + interval '1 day', convert_to($1, 'UTF8'), '{}', '{}')`, body)
	hidden := &event.ReportModerated{Subject: z.subject(4), CategoryID: 2, Action: event.NameHidden}
	mustApply(t, store, postgres.Message{ID: uuid.NewString(), Value: notification.Of(hidden, "ann")})
	mustApply(t, store, public(z.vote(3))) // it comes late

	for _, table := range []string{"dead_letters", "delayed_messages"} {
		if n := count(t, pool, `select count(*) from `+table+` where convert_from(body, 'UTF8') ~ 'ann|Quokka|public"'`); n != 0 {
			t.Errorf("%s have the name", table)
		}
	}
	if n := count(t, pool, `select count(*) from notifications where not withheld`); n != 0 {
		t.Errorf("%d notifications are treated as about a public report", n)
	}
	letters := []deadletter.Letter{{Body: []byte(body)}}
	if err := store.Erased.Scrub(t.Context(), letters); err != nil || strings.Contains(string(letters[0].Body), "Quokka") {
		t.Errorf("a later dead letter is %s, error %v", letters[0].Body, err)
	}
}
