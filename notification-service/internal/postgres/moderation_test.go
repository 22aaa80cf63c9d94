package postgres_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
)

// A zebra is a report whose words are found wherever they are.
type zebra uuid.UUID

func (z zebra) subject(version int64) event.Subject {
	return event.Subject{ReportID: uuid.UUID(z), ReportVersion: version, ReportTitle: "Dark Zebra", Timestamp: 1767225600}
}

func (z zebra) vote(version int64) event.Message {
	return &event.VoteReceived{Subject: z.subject(version), VoterID: "ben", VoteType: event.Upvote, NewScore: new(version)}
}

func (z zebra) move(version int64) event.Message {
	return &event.StatusUpdate{Subject: z.subject(version), NewStatus: event.InProgress, Note: "Zebra seen"}
}

func (z zebra) created() event.Message {
	return &event.ReportCreated{Subject: z.subject(1), CategoryID: 2, CategoryName: "Lights", PrivacyLevel: event.Anonymous}
}

func (z zebra) hidden(version int64) event.Message {
	m := &event.ReportModerated{Subject: z.subject(version), CategoryID: 2, Action: event.Hidden, Hidden: true, Note: "It names somebody"}
	m.ReportTitle = "7KQ2-M9XB"
	return m
}

// restricted says that only the city sees it from now on.
func (z zebra) restricted(version int64) event.Message {
	m := z.hidden(version).(*event.ReportModerated)
	m.Action, m.Private, m.Note = event.Restricted, true, ""
	return m
}

// concealed are the messages after which nobody else may have its words.
func (z zebra) concealed() map[string]func(version int64) event.Message {
	return map[string]func(version int64) event.Message{"hidden": z.hidden, "restricted": z.restricted}
}

func (z zebra) redacted(version int64, notes ...int64) event.Message {
	m := &event.ReportModerated{Subject: z.subject(version), CategoryID: 2, Action: event.Redacted, RedactedNotes: notes}
	m.ReportTitle = "Dark [name]"
	return m
}

// of returns m as it comes from a queue, for ann, who filed the report.
func of(m event.Message) postgres.Message {
	return postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, "ann")}
}

// zebras counts the rows that have the word, in whatever anybody is shown.
func zebras(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	return count(t, pool, `
		select (select count(*) from notifications where data::text like '%Zebra%')
		  + (select count(*) from deliveries where convert_from(body, 'UTF8') like '%Zebra%')`)
}

// mustExpand has the endpoints told of m.
func mustExpand(t *testing.T, store *postgres.DB, m event.Message) {
	t.Helper()
	ev, err := webhook.EventOf(uuid.NewString(), m)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Endpoints.Expand(t.Context(), "webhooks", []webhook.Event{ev}); err != nil {
		t.Fatal(err)
	}
}

// shown returns what a batch tells the live streams.
func shown(t *testing.T, b notification.Batch) string {
	t.Helper()
	var all strings.Builder
	for _, n := range b.Notifications {
		all.Write(n.Data)
	}
	for _, d := range b.Feed {
		all.WriteString(jsonText(t, d))
	}
	return all.String()
}

// A report is hidden, or restricted to the city: what is stored of it has none of its
// words from then on, and what comes later from before has none either, in whatever order
// it comes.
func TestHiddenReportLosesItsWords(t *testing.T) {
	t.Parallel()
	report := zebra(uuid.New())
	for name, conceal := range report.concealed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			losesItsWords(t, report, conceal)
		})
	}
}

func losesItsWords(t *testing.T, report zebra, conceal func(version int64) event.Message) {
	t.Helper()
	store, pool := newStore(t)
	other := message(ann.Own())
	e := endpoint(t, store, webhook.Filter{})
	expand := func(m event.Message) { mustExpand(t, store, m) }
	if err := store.Follows.Follow(t.Context(), notification.Reader{UserID: "carl"}, uuid.UUID(report)); err != nil {
		t.Fatal(err)
	}
	mustApply(t, store, of(report.created()), of(report.vote(2)), of(report.move(3)), other)
	for _, m := range []event.Message{report.created(), report.vote(2)} {
		expand(m)
	}
	mustExec(t, pool, `update deliveries set state = 'done' where report_version = 1`)
	if n := zebras(t, pool); n != 6 {
		t.Fatalf("%d rows have the words before, want 6: is this test looking at all?", n)
	}
	before := count(t, pool, `select count(*) from notifications`)

	concealed := conceal(5).(*event.ReportModerated)
	applied := mustApply(t, store, of(concealed))
	if n := zebras(t, pool); n != 0 {
		t.Errorf("%d rows have the words still", n)
	}
	want := []notification.Moderation{{ReportID: uuid.UUID(report), Version: 5}}
	if len(applied.Batch.Moderated) != 1 || applied.Batch.Moderated[0] != want[0] {
		t.Errorf("the streams get %v, want %v", applied.Batch.Moderated, want)
	}
	if got := shown(t, applied.Batch); strings.Contains(got, "Zebra") || strings.Count(got, "It names somebody") != len(concealed.Note)/len("It names somebody") {
		t.Errorf("told is %s; want the reason once, for the reporter alone", got)
	}
	if feed := applied.Batch.Feed; len(feed) != 1 || feed[0].Action != event.Hidden || feed[0].Private {
		t.Errorf("the feed shows %+v, want that it is hidden", feed)
	}
	if n := count(t, pool, `select count(*) from deliveries where state = 'waiting'`); n != 0 {
		t.Errorf("%d deliveries wait that tell of it, want none", n)
	}
	if follows, err := store.Follows.List(t.Context(), notification.Reader{UserID: "carl"}); err != nil || len(follows) != 1 || follows[0].ReportID != uuid.UUID(report) {
		t.Errorf("the reader follows %v (error %v), want it as one that never was", follows, err)
	}

	// Messages that were on their way. The numbers go on without a gap.
	late := mustApply(t, store, of(report.vote(4)), of(report.created()), of(report.move(3)))
	expand(report.vote(4))
	if got := shown(t, late.Batch); strings.Contains(got, "Zebra") || len(late.Batch.Feed) != 0 {
		t.Errorf("told late is %s with %d feed events, want no words and none", got, len(late.Batch.Feed))
	}
	if n := zebras(t, pool); n != 0 {
		t.Errorf("%d rows have the words of what came late", n)
	}
	if n := count(t, pool, `select count(*) from deliveries where target = $1 and state = 'waiting'`, e.ID.String()); n != 0 {
		t.Errorf("%d deliveries wait, want none", n)
	}
	if n := count(t, pool, `select count(*) from notifications`); n != before+1+4 {
		t.Errorf("%d notifications, want %d: none goes, and none is left out", n, before+5)
	}
	if n := count(t, pool, `select count(*) from (select seq - row_number() over (partition by stream_id order by seq) as gap from notifications) g where gap <> 0`); n != 0 {
		t.Errorf("%d numbers follow a gap", n)
	}
	if n := count(t, pool, `select count(*) from notifications where data->>'report_title' = 'Pothole'`); n != 1 {
		t.Error("a notification of another report was changed")
	}

	// The message once more: its effect stands, and the streams hear of it again,
	// because the process that had it may have died before it told them.
	m := of(conceal(6))
	mustApply(t, store, m)
	again := mustApply(t, store, m)
	if again.Seen != 1 || len(again.Batch.Moderated) != 1 || len(again.Batch.Feed)+len(again.Batch.Notifications) != 0 {
		t.Errorf("the same message again: %+v", again)
	}

	// An older word does not undo a later one.
	mustApply(t, store, of(report.redacted(4)))
	if n := count(t, pool, `select count(*) from moderated_reports where hidden and version = 6`); n != 1 {
		t.Error("an older message has undone a later one")
	}
}

// Words are redacted: the title is the present one everywhere, and notes go where
// they were redacted and nowhere else.
func TestRedactedWordsGo(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	report := zebra(uuid.New())
	endpoint(t, store, webhook.Filter{})
	mustExpand(t, store, report.move(2))
	harmless := &event.StatusUpdate{Subject: report.subject(3), NewStatus: event.Pending, Note: "Sorry"}
	mustApply(t, store, of(report.move(2)), of(harmless))
	mustApply(t, store, of(report.redacted(5, 2)))
	late := mustApply(t, store, of(report.vote(4)))
	if n := zebras(t, pool); n != 0 {
		t.Errorf("%d rows have the words still", n)
	}
	if got := shown(t, late.Batch); !strings.Contains(got, "Dark [name]") {
		t.Errorf("told late is %s, want it with the present title", got)
	}
	for sql, want := range map[string]int{
		`select count(*) from notifications where data->>'report_title' = 'Dark [name]'`:                              4,
		`select count(*) from notifications where data->>'note' = 'Sorry'`:                                            1,
		`select count(*) from notifications where type = 'report.status.updated' and data->>'status' <> ''`:           2,
		`select count(*) from deliveries where state = 'waiting' and convert_from(body, 'UTF8') like '%Dark [name]%'`: 1,
	} {
		if n := count(t, pool, sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
	if later := mustApply(t, store, of(report.vote(6))); strings.Contains(shown(t, later.Batch), "[name]") {
		t.Error("what happened after it has other words than it came with")
	}
}

// A report is hidden while messages about it come from all queues at once. Whatever
// is committed before the hiding loses its words with it, and what comes after
// never has them.
func TestHiddenWhileMessagesAreInFlight(t *testing.T) {
	t.Parallel()
	const rounds, writers, each = 10, 4, 8
	store, pool := newStore(t)
	endpoint(t, store, webhook.Filter{})
	for round := range rounds {
		report := zebra(uuid.New())
		conceal := report.hidden
		if round%2 == 1 {
			conceal = report.restricted
		}
		hidden := make(chan struct{})
		var running sync.WaitGroup
		for w := range writers {
			running.Go(func() {
				for i := range each {
					if i == each/2 && w == 0 {
						close(hidden)
					}
					m := report.vote(int64(2 + w*each + i))
					if _, err := store.Effects.Apply(t.Context(), votes, []postgres.Message{of(m)}); err != nil {
						t.Error(err)
					}
					ev, err := webhook.EventOf(uuid.NewString(), m)
					if err != nil {
						t.Error(err)
					}
					if _, _, err := store.Endpoints.Expand(t.Context(), "webhooks", []webhook.Event{ev}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		<-hidden
		if _, err := store.Effects.Apply(t.Context(), "moderation", []postgres.Message{of(conceal(1000))}); err != nil {
			t.Error(err)
		}
		if n := zebras(t, pool); n != 0 {
			t.Errorf("%d rows have the words at once after", n)
		}
		running.Wait()
		if n := zebras(t, pool); n != 0 {
			t.Fatalf("%d rows have the words of what was in flight", n)
		}
	}
	if n := count(t, pool, `select count(*) from notifications`); n != rounds*(writers*each+1) {
		t.Errorf("%d notifications, want %d: none is lost", n, rounds*(writers*each+1))
	}
}

// Acts on one report that come together wait for one another, also for endpoints that
// are disabled and enabled: nothing is a deadlock, whose message would be tried again
// while the words stay.
func TestModerationsTogetherAreNoDeadlock(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	report := zebra(uuid.New())
	endpoints := []webhook.Endpoint{endpoint(t, store, webhook.Filter{}), endpoint(t, store, webhook.Filter{})}
	for version := range int64(60) {
		mustExpand(t, store, report.vote(2+version))
		mustApply(t, store, of(report.vote(2+version)))
	}
	const each = 12
	var all sync.WaitGroup
	for worker := range int64(4) {
		all.Go(func() {
			for i := range int64(each) {
				version := 1000 + 4*i + worker
				m := report.redacted(version, version)
				if worker%2 == 0 {
					m = report.concealed()[[]string{"hidden", "restricted"}[i%2]](version)
				}
				if _, err := store.Effects.Apply(t.Context(), "moderation", []postgres.Message{of(m)}); err != nil {
					t.Errorf("act %d: %v", version, err)
				}
			}
		})
	}
	for _, e := range endpoints {
		all.Go(func() {
			for range each {
				if _, err := pool.Exec(t.Context(), `
					update deliveries set state = 'waiting' where id = any(array(
						select id from deliveries where target = $1 and state <> 'waiting' order by id for update))`, e.ID.String()); err != nil {
					t.Error(err)
				}
				if _, err := store.Ledger.Withdraw(t.Context(), webhook.Channel, ledger.Held, []string{e.ID.String()}); err != nil {
					t.Errorf("withdraw: %v", err)
				}
			}
		})
	}
	all.Wait()
	if n := zebras(t, pool); n != 0 {
		t.Errorf("%d rows have the words still", n)
	}
}
