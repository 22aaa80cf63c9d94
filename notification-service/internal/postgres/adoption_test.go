package postgres_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/consumer"
)

const theGuest = "0f8f1a1e-5f0e-4a5b-9a39-6a1f6a1b2c3d"

var guestReader = notification.Reader{UserID: theGuest}

// adopt has ann take over the guest, by the message with that id.
func adopt(t *testing.T, store *postgres.DB, message string) (seen int, moved []notification.Notification) {
	t.Helper()
	seen, moved, err := store.Adoptions.Apply(t.Context(), "adoptions", []consumer.Parsed[postgres.Adoption]{
		{ID: message, Value: postgres.Adoption{Guest: theGuest, Account: ann.UserID}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen, moved
}

// idsOf returns the messages of which a stream has notifications, in the order of their
// numbers, and fails if the numbers have a gap.
func idsOf(t *testing.T, pool *pgxpool.Pool, stream notification.Stream) (ids []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		select n.seq, n.message_id, s.last_seq from streams s join notifications n on n.stream_id = s.id where s.name = $1 order by n.seq`, stream)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var seq, last int64
	for rows.Next() {
		var id string
		if err := rows.Scan(&seq, &id, &last); err != nil {
			t.Fatal(err)
		}
		if ids = append(ids, id); seq != int64(len(ids)) {
			t.Errorf("%s: number %d is at place %d", stream, seq, len(ids))
		}
	}
	if seq != last {
		t.Errorf("%s: the last number is %d, and the head says %d", stream, seq, last)
	}
	return ids
}

func idsOfMessages(batches ...[]postgres.Message) (ids []string) {
	for _, batch := range batches {
		for _, m := range batch {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// The account has what it had, then what the guest had, then what comes for either: each once,
// in one row of numbers, and read where it was read before. A message that comes twice
// moves nothing.
func TestAdoptMovesTheStream(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	own, theirs, late := messages(2, notification.UserStream("ann")), messages(3, notification.UserStream(theGuest)), messages(2, notification.UserStream(theGuest))
	mustApply(t, store, own...)
	mustApply(t, store, theirs...)
	for _, r := range []notification.Reader{ann, guestReader} {
		if _, err := store.Streams.View(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, pool, `update read_marks m set seq = 2 from streams s where s.id = m.reader and m.stream_id = s.id and s.name = 'user:' || $1`, theGuest)
	var before string
	if err := pool.QueryRow(t.Context(), `select epoch from streams where name = 'user:ann'`).Scan(&before); err != nil {
		t.Fatal(err)
	}

	if seen, moved := adopt(t, store, "m1"); seen != 0 || len(moved) != 2 || moved[0].Seq != 5 || moved[0].Epoch == before || moved[1].Seq != 0 || moved[1].Stream != guestReader.Own() {
		t.Errorf("seen %d, moved %+v; want the head of a stream that started over, and the guest's end", seen, moved)
	}
	if seen, moved := adopt(t, store, "m1"); seen != 1 || len(moved) != 0 {
		t.Errorf("again: seen %d, moved %+v", seen, moved)
	}
	if _, moved := adopt(t, store, "m2"); len(moved) != 0 {
		t.Errorf("by another message: moved %+v", moved)
	}
	mustApply(t, store, late...)
	mustApply(t, store, late...) // delivered twice
	if got, want := idsOf(t, pool, notification.UserStream("ann")), idsOfMessages(own, theirs, late); !slices.Equal(got, want) {
		t.Errorf("the account has\n%v, want\n%v", got, want)
	}
	if got := idsOf(t, pool, notification.UserStream(theGuest)); len(got) != 0 {
		t.Errorf("the guest has %v", got)
	}
	if view, err := store.Streams.View(t.Context(), ann); err != nil || view.Unread != 2+1+2 {
		t.Errorf("%d unread, error %v; want the account's two, the guest's third and two new ones", view.Unread, err)
	}
	if adopted, err := store.Adoptions.Adopted(t.Context(), theGuest); err != nil || !adopted {
		t.Errorf("adopted: %t, %v", adopted, err)
	}
}

// However messages to the guest and the adoption meet, nothing is lost, and nothing doubled.
func TestAdoptionWhileMessagesCome(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	const workers, each = 4, 30
	var wg sync.WaitGroup
	start := make(chan struct{})
	var head int64 // the last number that the adoption moved
	var want []string
	for range workers {
		var batches [][]postgres.Message
		for i := range each {
			batch := messages(2, notification.UserStream(theGuest))
			batch = append(batch, message(notification.UserStream("ann")), message(notification.Officials))
			if i%3 == 0 { // a follower of the same report, as an account and as a guest
				batch = append(batch, message(notification.UserStream("ann"), notification.UserStream(theGuest)))
			}
			batches = append(batches, batch)
			for _, m := range batch {
				if m.Value.Drafts[0].Stream != notification.Officials {
					want = append(want, m.ID)
				}
			}
		}
		wg.Go(func() {
			<-start
			for _, batch := range batches {
				for range 2 { // every message is delivered twice
					if _, err := store.Effects.Apply(t.Context(), votes, batch); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Go(func() {
		<-start
		for n := 0; n < workers*each/4; {
			if err := pool.QueryRow(t.Context(), `select count(*) from processed_messages`).Scan(&n); err != nil {
				t.Error(err)
				return
			}
		}
		_, moved := adopt(t, store, "m1")
		head = moved[0].Seq
	})
	close(start)
	wg.Wait()
	got := idsOf(t, pool, notification.UserStream("ann"))
	if guest := idsOf(t, pool, notification.UserStream(theGuest)); len(guest) > 0 {
		t.Errorf("the guest has %d notifications, want none", len(guest))
	}
	// A message for both that came before the adoption had two notifications, as it should.
	after := slices.Sorted(slices.Values(got[head:]))
	if once := slices.Compact(slices.Clone(after)); len(after) == 0 || len(once) != len(after) {
		t.Errorf("%d notifications after the adoption are of %d messages", len(after), len(once))
	}
	slices.Sort(got)
	slices.Sort(want)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("%d messages reached the account, want %d", len(got), len(want))
	}
}

// The choices of the guest are the account's, except where the account chose: follows, consents, devices
// and the address, with the mails that wait.
func TestAdoptMovesChoices(t *testing.T) {
	t.Parallel()
	for _, hasAddress := range []bool{false, true} {
		t.Run(fmt.Sprintf("account has an address %t", hasAddress), func(t *testing.T) {
			t.Parallel()
			store, pool := newStore(t)
			shared, only := uuid.New(), uuid.New()
			for r, reports := range map[notification.Reader][]uuid.UUID{ann: {shared}, guestReader: {shared, only}} {
				for _, id := range reports {
					if err := store.Follows.Follow(t.Context(), r, id); err != nil {
						t.Fatal(err)
					}
				}
				if err := store.Contacts.SetConsent(t.Context(), r, only, true); err != nil {
					t.Fatal(err)
				}
			}
			const address = `
				insert into contacts (id, stream_id, address, address_mac, lane, language, zone, state, kinds)
				select $2, id, 'sealed', 'mac', $3, 'en', 'UTC', 'active', '{}' from streams where name = 'user:' || $1`
			theirs, own := uuid.New(), uuid.New()
			mustExec(t, pool, address, theGuest, theirs, "guest.example")
			if hasAddress {
				mustExec(t, pool, address, "ann", own, "ann.example")
			}
			mustExec(t, pool, `
				insert into deliveries (channel, lane, target, message_id, kind, body) values ('email', 'guest.example', $1, 'n', 'anonymous', '')`, theirs.String())
			mustExec(t, pool, `
				insert into push_subscriptions (id, stream_id, endpoint, endpoint_mac, keys, lane, language, user_agent)
				select gen_random_uuid(), id, 'e', 'm', 'k', 'l', 'en', 'Firefox' from streams where name = 'user:' || $1`, theGuest)
			adopt(t, store, "m1")
			target := theirs
			if hasAddress {
				target = own
			}
			for what, n := range map[string]int{
				`select count(*) from follows f join streams s on s.id = f.stream_id where s.name = 'user:ann'`:            2,
				`select count(*) from mail_consents f join streams s on s.id = f.stream_id where s.name = 'user:ann'`:      1,
				`select count(*) from push_subscriptions f join streams s on s.id = f.stream_id where s.name = 'user:ann'`: 1,
				`select count(*) from contacts`: 1,
				`select count(*) from contacts f join streams s on s.id = f.stream_id where s.name = 'user:ann' and f.id = '` + target.String() + `'`: 1,
				`select count(*) from deliveries where state = 'waiting' and target = '` + target.String() + `'`:                                      1,
			} {
				if got := count(t, pool, what); got != n {
					t.Errorf("%s: %d, want %d", what, got, n)
				}
			}
		})
	}
}

// Once the account is gone, what comes for its guest goes nowhere; the mark stays that says
// so.
func TestAdoptedGuestOfAnErasedAccount(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustApply(t, store, messages(1, notification.UserStream(theGuest))...)
	adopt(t, store, "m1")
	mustExec(t, pool, `delete from notifications`)
	mustExec(t, pool, `delete from streams where name = 'user:ann'`)
	mustApply(t, store, messages(1, notification.UserStream(theGuest))...)
	if n := count(t, pool, `select count(*) from notifications`); n != 0 {
		t.Errorf("%d notifications, want none", n)
	}
	_, _, err := store.Adoptions.Apply(t.Context(), "adoptions", []consumer.Parsed[postgres.Adoption]{
		{ID: "m3", Value: postgres.Adoption{Guest: "1f8f1a1e-5f0e-4a5b-9a39-6a1f6a1b2c3d"}},
	})
	if err != nil {
		t.Errorf("an account that was erased before: %v", err)
	}
}

// Notifications that an account and a guest both have, because the account follows the guest's report, are one
// notification after the adoption: read if either read it, and the numbers and digests close up.
func TestAdoptionShowsNothingTwice(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	account, guest := notification.UserStream("ann"), notification.UserStream(theGuest)
	both := []postgres.Message{message(guest, account), message(guest, account), message(guest, account)}
	both[0].Value.Drafts[0].Data.VerdictUntil = new(time.Now().UTC()) // which only the reporter gets
	own, first, middle, last := message(account), message(guest), message(guest), message(guest)
	mustApply(t, store, own, first, both[0], both[1], middle, both[2], last) // the guest's 1 to 6; the account's 1 to 4
	for _, r := range []notification.Reader{ann, guestReader} {
		if _, err := store.Streams.View(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, pool, `update read_marks m set seq = 2 from streams s where s.id = m.reader and m.stream_id = s.id and s.name = $1`, guest)
	contact := uuid.New()
	mustExec(t, pool, `
		insert into contacts (id, stream_id, address, address_mac, lane, language, zone, state, kinds)
		select $2, id, 'sealed', 'mac', 'guest.example', 'en', 'UTC', 'active', '{}' from streams where name = $1`, guest, contact)
	mustExec(t, pool, `insert into digests (stream_id, frequency, at, next_at, sent_seq) select id, 'daily', 0, now(), 5 from streams where name = $1`, guest)
	mustExec(t, pool, `
		insert into deliveries (channel, lane, target, message_id, kind, body)
		values ('email', 'guest.example', $1, 'n', 'digest', convert_to('{"after": 2, "to": 5}', 'UTF8'))`, contact.String())

	if _, moved := adopt(t, store, "m1"); len(moved) != 2 || moved[0].Seq != 7 {
		t.Errorf("moved %+v; want the head of the stream at 7", moved)
	}
	want := idsOfMessages([]postgres.Message{own}, both, []postgres.Message{first, middle, last})
	if got := idsOf(t, pool, account); !slices.Equal(got, want) {
		t.Errorf("the account has\n%v, want\n%v", got, want)
	}
	// Read are the guest's first and second, which is the first that both had.
	if view, err := store.Streams.View(t.Context(), ann); err != nil || view.Unread != 5 {
		t.Errorf("%d unread, error %v; want 5", view.Unread, err)
	}
	page, err := store.Streams.List(t.Context(), ann, nil, true, 20)
	if err != nil {
		t.Fatal(err)
	}
	var unread []int64
	for _, item := range page.Items {
		unread = append(unread, item.Seq)
	}
	if slices.Sort(unread); !slices.Equal(unread, []int64{1, 3, 4, 6, 7}) {
		t.Errorf("unread are %v", unread)
	}
	for what, n := range map[string]int{
		`select sent_seq from digests`:                                              6, // the guest's fourth of its own is to come
		`select (convert_from(body, 'UTF8')::jsonb->>'after')::int from deliveries`: 5,
		`select (convert_from(body, 'UTF8')::jsonb->>'to')::int from deliveries`:    6,
		`select count(*) from notifications where data ? 'verdict_until'`:           1,
	} {
		if got := count(t, pool, what); got != n {
			t.Errorf("%s: %d, want %d", what, got, n)
		}
	}
	// Published again, although nothing is known of them: nobody is shown anything.
	mustExec(t, pool, `delete from processed_messages`)
	if applied := mustApply(t, store, again(append(both, own, first)...)...); len(applied.Batch.Notifications) != 0 {
		t.Errorf("published again: %v", places(applied.Batch.Notifications))
	}
	if got := idsOf(t, pool, account); !slices.Equal(got, want) {
		t.Errorf("after that the account has\n%v, want\n%v", got, want)
	}
}
