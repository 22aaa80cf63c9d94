package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
)

const year = 365 * 24 * time.Hour

// keepYear keeps everything for a year.
var keepYear = postgres.Retention{Notifications: retention.Period(year), ReadMarks: retention.Period(year), Audit: retention.Period(year)}

// sweep removes what is old, as the scheduled job does.
func sweep(ctx context.Context, pool *pgxpool.Pool, keep postgres.Retention) error {
	return scheduletest.Run(ctx, pool, retention.Job(keep.Tasks(), prometheus.NewRegistry()))
}

// oldMessage returns a message of some time ago.
func oldMessage(ago time.Duration, stream notification.Stream) postgres.Message {
	m := message(stream)
	id := uuid.Must(uuid.NewV7())
	ms := time.Now().Add(-ago).UnixMilli()
	binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16|uint64(binary.BigEndian.Uint16(id[6:8])))
	m.Value.Drafts[0].ID = id
	return m
}

// age makes the notifications as old as their ids say.
func age(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	mustExec(t, pool, `
		update notifications set created_at =
		  to_timestamp(('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)`)
}

// Streams are shortened from their beginnings while others write to them: the
// numbers that are left have no gap, nothing young goes, and the count of the
// unread is that of what is there.
func TestRetentionOfNotifications(t *testing.T) {
	t.Parallel()
	const users, old, young = 5, 700, 40
	store, pool := newStore(t)
	streams := []notification.Stream{notification.Officials}
	readers := []notification.Reader{{UserID: "olga", Official: true}}
	for i := range users {
		readers = append(readers, notification.Reader{UserID: fmt.Sprint("user", i)})
		streams = append(streams, readers[i+1].Own())
	}
	for _, r := range readers {
		if _, err := store.Streams.View(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range streams {
		var batch []postgres.Message
		for range old {
			batch = append(batch, oldMessage(year+time.Hour, s))
		}
		mustApply(t, store, batch...)
		mustApply(t, store, oldMessage(year-time.Hour, s))
	}
	age(t, pool)
	markSome(t, store, readers, old)

	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for range 3 {
		writing.Go(func() {
			for range young {
				if _, err := store.Effects.Apply(t.Context(), votes, []postgres.Message{message(streams[rand.N(len(streams))]), message(streams[rand.N(len(streams))])}); err != nil {
					t.Errorf("apply: %v", err)
				}
			}
		})
	}
	writing.Go(func() { // readers that see a stream while it is shortened
		for ctx.Err() == nil {
			r := readers[rand.N(len(readers))]
			page, err := store.Streams.Since(t.Context(), []notification.Head{{Stream: r.Own()}}, 2000)
			if err != nil {
				t.Errorf("read: %v", err)
				return
			}
			for i, n := range page {
				if n.Seq != page[0].Seq+int64(i) {
					t.Errorf("number %d stands at place %d after %d", n.Seq, i, page[0].Seq)
				}
			}
		}
	})
	var sweeping sync.WaitGroup
	for range 2 { // as two replicas of different versions may
		sweeping.Go(func() { _ = sweep(t.Context(), pool, keepYear) })
	}
	sweeping.Wait()
	stop()
	writing.Wait()
	if err := sweep(t.Context(), pool, keepYear); err != nil {
		t.Fatal(err)
	}

	if n := count(t, pool, `select count(*) from notifications`); n != len(streams)+3*young*2 {
		t.Errorf("%d notifications are left, want the %d young ones", n, len(streams)+3*young*2)
	}
	checkStreams(t, store, pool, readers)
}

// markSome marks what readers have one by one, among the old and the young,
// and gives them a mark that is far behind, one in the middle of what goes, or
// one at the end.
func markSome(t *testing.T, store *postgres.DB, readers []notification.Reader, old int64) {
	t.Helper()
	for i, r := range readers {
		page, err := store.Streams.List(t.Context(), r, nil, false, 100)
		if err != nil {
			t.Fatal(err)
		}
		if i%3 > 0 {
			cursor := page.View.Cursor()
			for k := range cursor {
				cursor[k].Seq -= int64(i%3-1) * old / 2
			}
			if _, err := store.Streams.MarkAll(t.Context(), r, cursor); err != nil {
				t.Fatal(err)
			}
		}
		for k, item := range page.Items {
			if k%7 == 0 {
				if _, err := store.Streams.Mark(t.Context(), r, item.ID, k%2 == 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// checkStreams sees that no stream has a gap, and that the count of the unread
// is that of the list.
func checkStreams(t *testing.T, store *postgres.DB, pool *pgxpool.Pool, readers []notification.Reader) {
	t.Helper()
	if n := count(t, pool, `
		select count(*) from streams s where last_seq - removed_to <> (select count(*) from notifications where stream_id = s.id)
		   or (last_seq > removed_to and removed_to + 1 <> (select min(seq) from notifications where stream_id = s.id))`); n != 0 {
		t.Errorf("%d streams have a gap, or a wrong beginning", n)
	}
	for _, r := range readers {
		view, err := store.Streams.View(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		page, err := store.Streams.List(t.Context(), r, nil, true, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if view.Unread != int64(len(page.Items)) {
			t.Errorf("%s: the count of the unread is %d, the list of the unread has %d", r.UserID, view.Unread, len(page.Items))
		}
	}
}

// Readers who have not come for long are forgotten, with what they marked. Recent
// readers, and those with notifications, stay.
func TestRetentionOfReadMarks(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	view := func(r notification.Reader) notification.View {
		t.Helper()
		v, err := store.Streams.View(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	gone, back, full := notification.Reader{UserID: "gone", Official: true}, notification.Reader{UserID: "back"}, notification.Reader{UserID: "full"}
	mustApply(t, store, message(notification.Officials), message(full.Own()))
	before := view(gone)
	view(back)
	view(full)
	mustApply(t, store, messages(3, notification.Officials)...)
	item, err := store.Streams.List(t.Context(), gone, nil, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Streams.Mark(t.Context(), gone, item.Items[0].ID, true); err != nil {
		t.Fatal(err)
	}
	mustExec(t, pool, `update read_marks set seen_at = now() - interval '366 days'`)
	view(back) // and so this reader is present
	if err := sweep(t.Context(), pool, keepYear); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, `select count(*) from streams where name in ('user:back', 'user:full', 'role:official')`); n != 3 {
		t.Errorf("%d of the streams that have a reader or notifications are left, want 3", n)
	}
	if n := count(t, pool, `select (select count(*) from streams where name = 'user:gone') + (select count(*) from notification_reads)`); n != 0 {
		t.Errorf("%d rows are left of the reader who is gone", n)
	}
	after := view(gone)
	if after.Unread != 0 || after.Heads[0].Epoch == before.Heads[0].Epoch {
		t.Errorf("back again the reader sees %+v, want a new stream and nothing unread", after)
	}
}

// A reader whose stream is removed while a notification is written to it gets
// the notification, in the old stream or in a new one.
func TestRetentionBesideTheConsumer(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	const rounds = 30
	for range rounds {
		if _, err := store.Streams.View(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
		mustExec(t, pool, `delete from notifications`)
		mustExec(t, pool, `update read_marks set seen_at = now() - interval '366 days'`)
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := store.Effects.Apply(t.Context(), votes, []postgres.Message{message(ann.Own())}); err != nil {
				t.Errorf("apply: %v", err)
			}
		})
		both.Go(func() {
			if err := sweep(t.Context(), pool, keepYear); err != nil {
				t.Errorf("sweep: %v", err)
			}
		})
		both.Wait()
		if n := count(t, pool, `select count(*) from notifications n join streams s on s.id = n.stream_id where s.name = 'user:ann'`); n != 1 {
			t.Fatalf("%d notifications, want the one that was written", n)
		}
	}
}

func TestRetentionOfAudit(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	mustExec(t, pool, `
		insert into operations_audit (at, actor, action) select now() - n * interval '1 hour', 'pavel', 'discard' from generate_series(10000, 1, -1) n`)
	if err := sweep(t.Context(), pool, keepYear); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, `select count(*) from operations_audit`); n != 365*24-1 {
		t.Errorf("%d entries are left, want those of a year", n)
	}
}

// An address that nobody has proven goes after a week, with what was to be written
// there; not while a code may be typed. One that was proven, or took nothing any
// more, stays.
func TestRetentionOfUnverifiedAddresses(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	for user, change := range map[string]string{
		"forgotten": ``, "young": `state_since = now() - interval '6 days'`, "typing": `code_mac = '', code_until = now() + interval '1 minute'`,
		"proven": `state = 'active'`, "bounced": `state = 'bounced'`, "slow": `code_mac = '', code_until = now() - interval '6 days'`,
	} {
		reader := notification.Reader{UserID: user}
		c := email.Contact{ID: uuid.New(), Lane: "host", Language: wording.English, Zone: "UTC"}
		if _, err := store.Contacts.Set(t.Context(), reader, c, [][]byte{[]byte(user)}); err != nil {
			t.Fatal(err)
		}
		if err := store.Digests.Set(t.Context(), reader, email.DigestSettings{Frequency: email.Daily}); err != nil {
			t.Fatal(err)
		}
		if err := store.Contacts.SetConsent(t.Context(), reader, uuid.New(), true); err != nil {
			t.Fatal(err)
		}
		mustExec(t, pool, `update contacts set state_since = now() - interval '8 days' where id = $1`, c.ID)
		if change != "" {
			mustExec(t, pool, `update contacts set `+change+` where id = $1`, c.ID)
		}
	}
	if err := sweep(t.Context(), pool, keepYear); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"contacts", "digests", "mail_consents"} {
		var left []string
		err := pool.QueryRow(t.Context(), `
			select array_agg(substr(name, 6) order by name) from streams where id in (select stream_id from `+table+`)`).Scan(&left)
		if want := []string{"bounced", "proven", "typing", "young"}; err != nil || !slices.Equal(left, want) {
			t.Errorf("%s are left of %v (error %v), want of %v", table, left, err, want)
		}
	}
}

// The address of a caller who never confirms it goes after seven days, not before, with
// all that leads to it. One that was confirmed stays.
func TestUnprovenCallersGo(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ring, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	keys := email.NewKeys(ring)
	enter := func(address string) (token string) {
		t.Helper()
		c := email.Contact{ID: uuid.Must(uuid.NewV7()), Lane: "host", Language: wording.English, Zone: "Asia/Jakarta"}
		c.Address, token = keys.SealAddress(c.ID, address), email.NewToken()
		proof := postgres.Proof{Hash: email.TokenHash(token), Body: func(uuid.UUID) ([]byte, error) { return []byte(`{}`), nil }}
		if _, err := store.Callers.Set(t.Context(), notification.Reader{UserID: event.NewCaller()}, uuid.New(), c, keys.AddressHashes(address), proof); err != nil {
			t.Fatal(err)
		}
		return token
	}
	unproven := enter("budi@example.org")
	if _, err := store.Callers.Prove(t.Context(), email.TokenHash(enter("siti@example.org"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		shift string
		want  int
	}{{"6 days 23 hours", 2}, {"1 hour 1 minute", 1}} {
		mustExec(t, pool, `update contacts set state_since = state_since - '`+tt.shift+`'::interval`)
		_, err := store.Callers.Provable(t.Context(), email.TokenHash(unproven))
		if works := err == nil; works != (tt.want == 2) {
			t.Errorf("after %s more the link works: %t", tt.shift, works)
		}
		if err := sweep(t.Context(), pool, keepYear); err != nil {
			t.Fatal(err)
		}
		var contacts, callers int
		err = pool.QueryRow(t.Context(), `select (select count(*) from contacts), (select count(*) from callers)`).Scan(&contacts, &callers)
		if err != nil || contacts != tt.want || callers != tt.want {
			t.Errorf("after %s more there are %d contacts and %d callers (error %v), want %d", tt.shift, contacts, callers, err, tt.want)
		}
	}
	mustExec(t, pool, `update caller_mails set due_at = due_at - interval '25 hours'`)
	if _, err := store.Deliveries.Upkeep(t.Context(), year); err != nil {
		t.Fatal(err)
	}
	var mails int
	if err := pool.QueryRow(t.Context(), `select count(*) from caller_mails`).Scan(&mails); err != nil || mails != 0 {
		t.Errorf("%d mails are still noted, error %v", mails, err)
	}
}
