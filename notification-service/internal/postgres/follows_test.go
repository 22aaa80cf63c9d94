package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/event"
)

// moved returns the message of a change of status.
func moved(report uuid.UUID, recipient string) postgres.Message {
	m := &event.StatusUpdate{
		Subject:   event.Subject{ReportID: report, ReportVersion: 2, ReportTitle: "Pothole", Timestamp: time.Now().Unix()},
		NewStatus: event.InProgress,
	}
	return postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, recipient)}
}

func mustFollow(t *testing.T, store *postgres.DB, reader notification.Reader, report uuid.UUID) {
	t.Helper()
	if err := store.Follows.Follow(t.Context(), reader, report); err != nil {
		t.Fatal(err)
	}
}

// A follower of a report is notified once when its status changes: also its reporter,
// and when the message comes again.
func TestFollowersAreTold(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	report, other := uuid.New(), uuid.New()
	bob := notification.Reader{UserID: "bob"}
	for _, reader := range []notification.Reader{ann, bob, olga} {
		mustFollow(t, store, reader, report)
	}
	mustFollow(t, store, bob, report) // again
	mustFollow(t, store, ann, other)
	mustFollow(t, store, olga, other)
	if err := store.Follows.Unfollow(t.Context(), olga, other); err != nil {
		t.Fatal(err)
	}

	first, second := moved(report, "ann"), moved(other, "")
	vote := message(ann.Own())
	vote.Value.Feed.ReportID = report
	applied := mustApply(t, store, first, second, vote)
	got := places(applied.Batch.Notifications)
	slices.Sort(got)
	want := []string{"user:ann:1", "user:ann:2", "user:ann:3", "user:bob:1", "user:olga:1"}
	if !slices.Equal(got, want) {
		t.Errorf("told were %v, want %v", got, want)
	}
	if again := mustApply(t, store, first, second, vote); again.Seen != 3 || len(again.Batch.Notifications) != 0 {
		t.Errorf("the messages came again: %d seen and %v told, want 3 and nobody", again.Seen, places(again.Batch.Notifications))
	}
	twice := mustApply(t, store, moved(report, "ann"), moved(report, "ann"))
	got = places(twice.Batch.Notifications)
	slices.Sort(got)
	if want := []string{"user:ann:4", "user:ann:5", "user:bob:2", "user:bob:3", "user:olga:2", "user:olga:3"}; !slices.Equal(got, want) {
		t.Errorf("of two changes at once, told were %v, want %v", got, want)
	}
	page, err := store.Streams.List(t.Context(), bob, nil, true, 10)
	if err != nil || len(page.Items) != 3 || page.View.Unread != 3 {
		t.Errorf("bob's list is %+v (error %v), want three that are unread", page, err)
	}
	list, err := store.Follows.List(t.Context(), ann)
	if err != nil || len(list) != 2 || list[0].ReportID != other || list[1].ReportID != report {
		t.Errorf("ann follows %v (error %v), want the latest first", list, err)
	}
}

// Nobody follows more than the page asks for, and no report has more followers
// than a transaction should.
func TestFollowsHaveLimits(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	report := uuid.New()
	for range notification.MaxFollows - 1 {
		mustFollow(t, store, ann, uuid.New())
	}
	mustFollow(t, store, ann, report)
	mustFollow(t, store, ann, report) // which she does
	if err := store.Follows.Follow(t.Context(), ann, uuid.New()); !errors.Is(err, notification.ErrFollows) {
		t.Errorf("one too many: %v, want %v", err, notification.ErrFollows)
	}
	mustExec(t, pool, `insert into streams (name) select 'user:f' || n from generate_series(2, $1) n`, notification.MaxFollowers)
	mustExec(t, pool, `insert into follows (stream_id, report_id) select id, $1 from streams where name like 'user:f%'`, report)
	if err := store.Follows.Follow(t.Context(), olga, report); !errors.Is(err, notification.ErrFollowers) {
		t.Errorf("one follower too many: %v, want %v", err, notification.ErrFollowers)
	}
	if applied := mustApply(t, store, moved(report, "")); len(applied.Batch.Notifications) != notification.MaxFollowers {
		t.Errorf("%d are notified, want %d", len(applied.Batch.Notifications), notification.MaxFollowers)
	}
}

// Follows are deleted with their reader: on erasure, and after as long an absence
// as read marks are kept.
func TestFollowsGoWithTheirReader(t *testing.T) {
	t.Parallel()
	t.Run("erased", func(t *testing.T) {
		t.Parallel()
		e := newErasing(t)
		report := uuid.New()
		mustFollow(t, e.DB, kanari, report)
		mustFollow(t, e.DB, ann, report)
		e.erase()
		if got := places(mustApply(t, e.DB, moved(report, "")).Batch.Notifications); !slices.Equal(got, []string{"user:ann:1"}) {
			t.Errorf("told were %v, want ann alone", got)
		}
		if err := e.Follows.Follow(t.Context(), kanari, report); err == nil {
			t.Error("an erased reader follows a report")
		}
		wantFollows(t, e.pool, 1)
	})
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		store, pool := newStore(t)
		mustFollow(t, store, ann, uuid.New())
		mustFollow(t, store, olga, uuid.New())
		mustExec(t, pool, `update read_marks set seen_at = now() - interval '2 years' where reader = (select id from streams where name = 'user:ann')`)
		if err := sweep(t.Context(), pool, keepYear); err != nil {
			t.Fatal(err)
		}
		wantFollows(t, pool, 1)
	})
}

func wantFollows(t *testing.T, pool *pgxpool.Pool, want int) {
	t.Helper()
	if n := count(t, pool, `select count(*) from follows`); n != want {
		t.Errorf("%d follows are kept, want %d", n, want)
	}
}

// An official who has turned off the officials' stream finds none of it in the list
// or the count, and nothing to catch up on after turning it on again. Other readers
// are not affected.
func TestOnlyOwn(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	other := notification.Reader{UserID: "oskar", Official: true}
	view := func(reader notification.Reader) string {
		t.Helper()
		page, err := store.Streams.List(t.Context(), reader, nil, false, 10)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d listed, %d unread, only own %t", len(page.Items), page.View.Unread, page.View.OnlyOwn)
	}
	set := func(only bool) {
		t.Helper()
		if _, err := store.Streams.SetOnlyOwn(t.Context(), olga, only); err != nil {
			t.Fatal(err)
		}
	}
	view(other)
	set(true)
	set(true) // again
	mustApply(t, store, message(olga.Own()), message(notification.Officials), message(notification.Officials))
	for _, step := range []struct {
		reader notification.Reader
		want   string
	}{{olga, "1 listed, 1 unread, only own true"}, {other, "2 listed, 2 unread, only own false"}} {
		if got := view(step.reader); got != step.want {
			t.Errorf("%s: %s, want %s", step.reader.UserID, got, step.want)
		}
	}
	set(false)
	if got, want := view(olga), "3 listed, 1 unread, only own false"; got != want {
		t.Errorf("after she wants all again: %s, want %s", got, want)
	}
	mustApply(t, store, message(notification.Officials))
	if got, want := view(olga), "4 listed, 2 unread, only own false"; got != want {
		t.Errorf("after one more: %s, want %s", got, want)
	}
}

// Followers are notified once that a report was withdrawn, and follow it no longer; their
// earlier notifications say so, too, without its words. A process that dies before the
// follows end does it again.
func TestWithdrawnEndsFollows(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	z := zebra(uuid.New())
	ben := notification.Reader{UserID: "ben"}
	if err := store.Follows.Follow(t.Context(), ben, uuid.UUID(z)); err != nil {
		t.Fatal(err)
	}
	mustApply(t, store, of(z.move(2)))
	withdrawn := &event.ReportModerated{Subject: z.subject(3), CategoryID: 2, Action: event.Withdrawn, Hidden: true}
	withdrawn.ReportTitle = "7KQ2-M9XB"
	message := postgres.Message{ID: uuid.NewString(), Value: notification.Of(withdrawn, "")}
	mustExec(t, pool, `create function die() returns trigger language plpgsql as $$ begin raise 'killed'; end $$`)
	mustExec(t, pool, `create trigger die before delete on follows for each row execute function die()`)
	if _, err := store.Effects.Apply(t.Context(), votes, []postgres.Message{message}); err == nil {
		t.Fatal("the process did not die")
	}
	mustExec(t, pool, `drop trigger die on follows`)
	mustApply(t, store, message)
	mustApply(t, store, of(z.vote(2))) // it comes late

	if follows, err := store.Follows.List(t.Context(), ben); err != nil || len(follows) > 0 {
		t.Errorf("ben follows %v, error %v", follows, err)
	}
	if n := zebras(t, pool); n > 0 {
		t.Errorf("%d rows have its words", n)
	}
	for stream, want := range map[string]int{"user:ben": 2, "user:ann": 2} {
		n := count(t, pool, `select count(*) from notifications n join streams s on s.id = n.stream_id
			where s.name = $1 and n.data ->> 'action' = 'withdrawn' and n.data ->> 'report_title' = '7KQ2-M9XB'`, stream)
		if n != want {
			t.Errorf("%s has %d notifications about the withdrawal, want %d", stream, n, want)
		}
	}
}
