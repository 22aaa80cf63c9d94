package postgres_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
)

func device(label string) push.Device {
	return push.Device{
		ID: uuid.Must(uuid.NewV7()), Endpoint: "sealed " + label, Keys: "sealed", Lane: "push.example.org", Language: wording.English, Label: label,
	}
}

func mustAddDevice(t *testing.T, store *postgres.DB, reader notification.Reader, label string, hashes ...string) push.Device {
	t.Helper()
	all := make([][]byte, len(hashes))
	for i, hash := range hashes {
		all[i] = []byte(hash)
	}
	kept, _, err := store.Devices.Add(t.Context(), reader, device(label), all)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// A browser is one device of one person, however often it says so, also under
// another key; who signs in there next takes it over.
func TestDevices(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	first := mustAddDevice(t, store, ann, "Firefox", "old key")
	again := mustAddDevice(t, store, ann, "Firefox, Android", "new key", "old key")
	if again.ID != first.ID || again.Label != "Firefox, Android" {
		t.Errorf("device %+v after %+v, want the same with another label", again, first)
	}
	mustExec(t, pool, `update push_preferences set kinds = '{}'`) // she wants nothing
	second := mustAddDevice(t, store, ann, "Chrome", "second")
	if kinds, err := store.Devices.Kinds(t.Context(), ann); err != nil || len(kinds) != 0 {
		t.Errorf("kinds %v, %v; want none after a second device", kinds, err)
	}
	taken := mustAddDevice(t, store, olga, "Firefox", "newest key", "new key", "old key")
	if n := count(t, pool, `select count(*) from push_subscriptions`); n != 2 || taken.ID == first.ID {
		t.Errorf("%d devices, want ann's second and olga's", n)
	}
	if err := store.Devices.Remove(t.Context(), olga, second.ID); err != nil {
		t.Fatal(err)
	}
	if list, err := store.Devices.List(t.Context(), ann); err != nil || len(list) != 1 || list[0].ID != second.ID || list[0].Endpoint != "" || list[0].Keys != "" {
		t.Errorf("ann has %+v, %v; want the second, without its address, whatever olga removes", list, err)
	}
	for i := range push.MaxDevices - 1 {
		mustAddDevice(t, store, ann, "More", fmt.Sprint("device ", i))
	}
	if _, _, err := store.Devices.Add(t.Context(), ann, device("Too many"), [][]byte{[]byte("newest key")}); !errors.Is(err, push.ErrTooManyDevices) {
		t.Errorf("error %v for one too many", err)
	}
	if list, err := store.Devices.List(t.Context(), olga); err != nil || len(list) != 1 {
		t.Errorf("olga has %d devices, %v; want the one that ann had no room for", len(list), err)
	}
}

// The statement that writes notifications says what package push says.
func TestPushRows(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	store := postgres.New(pool, postgres.Options{Mail: true, MailDue: time.Minute, Push: true})
	d := mustAddDevice(t, store, ann, "Firefox", "address")
	if err := store.Devices.SetKinds(t.Context(), ann, []string{string(event.VoteReceivedKey)}); err != nil {
		t.Fatal(err)
	}
	batch := messages(2, ann.Own())
	for range 2 { // the broker delivers them twice
		mustApply(t, store, append(batch, message(olga.Own()))...)
	}
	n := count(t, pool, `
		select count(*) from deliveries d join notifications n on n.id::text = d.message_id and n.type = d.kind
		where d.channel = $1 and d.target = $2 and d.lane = 'push.example.org' and d.report_id is null and d.report_version = 0 and d.body = ''
		  and d.due_at - d.created_at = $3::interval and d.not_after - d.created_at = $4::interval`,
		push.Channel, d.ID.String(), push.ReadFirst, push.Lifetime)
	if all := count(t, pool, `select count(*) from deliveries`); n != 2 || all != 2 {
		t.Errorf("%d of %d rows are as they should be, want 2 of 2", n, all)
	}
}

// After an erasure the person has no device, and nothing waits for one.
func TestErasureOfDevices(t *testing.T) {
	t.Parallel()
	e := newErasing(t, postgres.Options{Push: true})
	mustAddDevice(t, e.DB, kanari, "Firefox", "one")
	mustAddDevice(t, e.DB, kanari, "Chrome", "two")
	mustAddDevice(t, e.DB, ann, "Safari", "three")
	mustExec(t, e.pool, `update push_preferences set kinds = '{report.vote.received}'`)
	mustApply(t, e.DB, append(messages(3, kanari.Own()), message(ann.Own()))...)
	mustExec(t, e.pool, `insert into delivery_attempts (delivery_id, n, at, duration_ms, class) select id, 1, now(), 1, '5xx' from deliveries`)
	state := e.erase()
	if state.Removed["devices"] != 6+2+1 {
		t.Errorf("removed %v, want six pushes, two devices and a preference", state.Removed)
	}
	e.wantNoTraces()
	for table, want := range map[string]int{"push_subscriptions": 1, "push_preferences": 1, "deliveries": 1, "delivery_attempts": 1} {
		if n := count(t, e.pool, `select count(*) from `+table); n != want {
			t.Errorf("%d rows in %s, want ann's %d", n, table, want)
		}
	}
	if _, _, err := e.Devices.Add(t.Context(), kanari, device("Back"), [][]byte{[]byte("four")}); err == nil {
		t.Error("a request on its way has brought a device back")
	}
}

// An address that nobody has proven takes nothing from devices when it goes.
func TestConsentStaysForDevices(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	for i, reader := range []notification.Reader{ann, olga} {
		c := email.Contact{ID: uuid.New(), Lane: "host", Language: wording.English, Zone: "UTC"}
		if _, err := store.Contacts.Set(t.Context(), reader, c, [][]byte{{byte(i)}}); err != nil {
			t.Fatal(err)
		}
		if err := store.Contacts.SetConsent(t.Context(), reader, uuid.New(), true); err != nil {
			t.Fatal(err)
		}
	}
	mustAddDevice(t, store, ann, "Firefox", "address")
	mustExec(t, pool, `update contacts set state_since = now() - interval '8 days'`)
	if err := sweep(t.Context(), pool, keepYear); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, `select count(*) from mail_consents join streams s on s.id = stream_id where s.name = $1`, ann.Own()); n != 1 {
		t.Error("ann's device no longer gets pushes about her anonymous report")
	}
	if n := count(t, pool, `select count(*) from mail_consents`); n != 1 {
		t.Errorf("%d consents are left, want ann's", n)
	}
}

// A device that nothing was sent to for a year goes.
func TestRetentionOfDevices(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	for label, change := range map[string]string{
		"new": `created_at = now() - interval '364 days'`, "old": `created_at = now() - interval '366 days'`,
		"used":   `created_at = now() - interval '3 years', last_ok_at = now() - interval '364 days'`,
		"unused": `created_at = now() - interval '3 years', last_ok_at = now() - interval '366 days'`,
	} {
		d := mustAddDevice(t, store, ann, label, hex.EncodeToString([]byte(label)))
		mustExec(t, pool, `update push_subscriptions set `+change+` where id = $1`, d.ID)
	}
	if err := sweep(t.Context(), pool, keepYear); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := pool.QueryRow(t.Context(), `select array_agg(user_agent order by user_agent) from push_subscriptions`).Scan(&left)
	if want := []string{"new", "used"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%v are left (error %v), want %v", left, err, want)
	}
}

// A question and its reminder come by mail and push at once; those about an anonymous
// report only to who agreed to it, and without saying what they are.
func TestQuestionsAreMailedAndPushed(t *testing.T) {
	t.Parallel()
	e := newErasing(t, postgres.Options{Mail: true, Push: true})
	mustAddDevice(t, e.DB, ann, "Firefox", "one") // with the default kinds
	e.addContact(ann, "ann@surel.test")
	mustExec(t, e.pool, `update contacts set kinds = $1`, email.DefaultKinds)
	for _, key := range []event.Key{event.AskedKey, event.RemindedKey} {
		for _, tt := range []struct {
			name               string
			withheld, consents bool
			want               string
		}{
			{"public", false, false, string(key)},
			{"anonymous", true, false, ""},
			{"anonymous, agreed", true, true, email.Anonymous},
		} {
			m := message(ann.Own())
			d := &m.Value.Drafts[0]
			d.Data.Type, d.Withheld = key, tt.withheld
			if tt.consents {
				if err := e.Contacts.SetConsent(t.Context(), ann, d.Data.ReportID, true); err != nil {
					t.Fatal(err)
				}
			}
			mustApply(t, e.DB, m)
			var got string
			err := e.pool.QueryRow(t.Context(), `
				select coalesce(string_agg(channel || ' ' || kind, ', ' order by channel), '') from deliveries where message_id = $1::text`, d.ID.String()).Scan(&got)
			want := ""
			if tt.want != "" {
				want = "email " + tt.want + ", push " + tt.want
			}
			if err != nil || got != want {
				t.Errorf("%s, %s: deliveries are %q (error %v), want %q", key, tt.name, got, err, want)
			}
		}
	}
}
