package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/push/pushtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// Kills lose no push. One that was taken and not written down is sent once more,
// under the same topic and with the same text, so that no device shows it twice, and
// none gets another's.
func TestKillsWhilePushing(t *testing.T) {
	t.Parallel()
	kills := 30
	if testing.Short() {
		kills = 3
	}
	s := newSystem(t)
	service := pushtest.New(t)
	certificate := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(certificate, service.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	key, _ := push.NewKey()
	s.env = []string{
		"PUSH_VAPID_KEY=" + key, "PUSH_CONTACT=mailto:operations@city.example.org", "PUSH_ALLOW_HOSTS=" + service.Host, "SSL_CERT_FILE=" + certificate,
	}
	store := postgres.New(s.pool, postgres.Options{Push: true})
	const readers = 10
	for i := range readers {
		addDevice(t, store, push.NewKeys(s.keys), service, reader(i))
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	w := s.start()
	sent := 0
	tell := func(n int) {
		t.Helper()
		for range n {
			user := reader(sent % readers).UserID
			m := &event.StatusUpdate{
				Subject: event.Subject{
					ReportID: uuid.New(), ReportVersion: 2, ReportTitle: fmt.Sprint("Report ", sent), ReporterID: user, Timestamp: time.Now().Unix(),
				},
				NewStatus: event.Resolved,
			}
			if _, err := store.Effects.Apply(t.Context(), "test", []postgres.Message{{ID: uuid.NewString(), Value: notification.Of(m, user)}}); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		// Those that the worker has locked are due already.
		exec(`update deliveries set due_at = now() where id in (
			select id from deliveries where state = 'waiting' order by id for update skip locked)`)
	}
	const perRound = 20
	for range kills {
		before := len(service.Taken())
		tell(perRound)
		service.WaitFor(before + 1 + rand.IntN(perRound))
		w.Kill()
		s.leaseForGood()
		w.Start()
	}
	eventually.True(t, "all pushes are done", func() bool {
		var left int
		err := s.pool.QueryRow(t.Context(), `select count(*) from deliveries where state <> 'done'`).Scan(&left)
		return err == nil && left == 0
	})
	if code := w.Stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	taken := service.Taken()
	first, different := make(map[string]pushtest.Push), 0
	for _, p := range taken {
		if before, ok := first[p.Topic]; ok && (before.Endpoint != p.Endpoint || string(before.Text) != string(p.Text)) {
			different++
		}
		first[p.Topic] = p
	}
	t.Logf("kills=%d pushes=%d arrived=%d lost=%d doubled=%d", kills, sent, len(first), sent-len(first), len(taken)-len(first))
	if len(first) != sent || different > 0 {
		t.Errorf("%d of %d pushes arrived, %d topics with another device or text; want all and none", len(first), sent, different)
	}
	if doubled := len(taken) - len(first); doubled > kills*perRound {
		t.Errorf("%d doubled by %d kills", doubled, kills)
	}
}

// addDevice makes one that service knows a device of a reader.
func addDevice(t *testing.T, store *postgres.DB, keys *push.Keys, service *pushtest.Service, of notification.Reader) {
	t.Helper()
	said := service.Subscribe()
	d := push.Device{ID: uuid.New(), Lane: service.Host, Language: wording.English, Label: "Firefox"}
	d.Endpoint, d.Keys = keys.Seal(d.ID, push.Subscription{Endpoint: said.Endpoint, P256DH: said.P256DH, Auth: said.Auth})
	if _, _, err := store.Devices.Add(t.Context(), of, d, keys.EndpointHashes(said.Endpoint)); err != nil {
		t.Fatal(err)
	}
}
