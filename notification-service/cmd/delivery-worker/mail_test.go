package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	netmail "net/mail"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A hundred kills lose no mail. One that was accepted and not written down is sent
// once more, under the same Message-ID, and no recipient gets another's.
func TestKillsWhileMailing(t *testing.T) {
	t.Parallel()
	kills := 100
	if testing.Short() {
		kills = 5
	}
	s := newSystem(t)
	box := newMailbox(t)
	store, keys := s.mailTo(box)
	const readers = 10
	for i := range readers {
		c, hashes := contactAt(keys, fmt.Sprintf("reader%d@host%d.example.org", i, i%4))
		if _, err := store.Contacts.Set(t.Context(), reader(i), c, hashes); err != nil {
			t.Fatal(err)
		}
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`update contacts set state = 'active', kinds = '{report.vote.received}'`)
	w := s.start()
	proofs := 0
	sent := 0
	tell := func(n int) {
		t.Helper()
		for range n {
			user := reader(sent % readers).UserID
			m := &event.VoteReceived{
				Subject: event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole", ReporterID: user, Timestamp: time.Now().Unix()},
				VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(1)),
			}
			if _, err := store.Effects.Apply(t.Context(), "test", []postgres.Message{{ID: uuid.NewString(), Value: notification.Of(m, user)}}); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		enterCaller(t, store, keys, proofs)
		proofs++
		// Those that the worker has locked are due already.
		exec(`update deliveries set due_at = now() where id in (
			select id from deliveries where state = 'waiting' order by id for update skip locked)`)
	}
	const perRound = 20
	for range kills {
		before := box.count()
		tell(perRound)
		target := before + 1 + rand.IntN(perRound)
		eventually.True(t, "some mails have arrived", func() bool { return box.count() >= target })
		w.Kill()
		s.leaseForGood()
		w.Start()
	}
	eventually.True(t, "all mails are done", func() bool {
		var left int
		if err := s.pool.QueryRow(t.Context(), `select count(*) from deliveries where state <> 'done'`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
	if code := w.Stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	mails, different := box.byID()
	sent += proofs
	t.Logf("kills=%d mails=%d arrived=%d lost=%d doubled=%d", kills, sent, len(mails), sent-len(mails), box.count()-len(mails))
	if len(mails) != sent || different > 0 {
		t.Errorf("%d of %d mails arrived, %d ids with another recipient; want all and none", len(mails), sent, different)
	}
	// Each kill doubles at most what was in flight over the four connections, or
	// not yet written down.
	if doubled := box.count() - len(mails); doubled > kills*(perRound+1) {
		t.Errorf("%d doubled by %d kills", doubled, kills)
	}
}

// contactAt returns a new contact with an address, and what that is found by.
func contactAt(keys *email.Keys, address string) (email.Contact, [][]byte) {
	c := email.Contact{ID: uuid.New(), Lane: keys.Lane(address), Language: wording.Indonesian, Zone: "Asia/Jakarta"}
	c.Address = keys.SealAddress(c.ID, address)
	return c, keys.AddressHashes(address)
}

// mailTo has the workers that are started from now on send mails to box.
func (s *system) mailTo(box *mailbox) (*postgres.DB, *email.Keys) {
	s.env = append(s.env,
		"MAIL_URL=smtp+insecure://"+box.address, "MAIL_FROM=CityConnect <no-reply@city.example.org>", "PUBLIC_URL=https://city.example.org",
		"MAIL_RATE=10000", "MAIL_RETRY_DELAYS="+atOnce)
	return postgres.New(s.pool, postgres.Options{Mail: true, MailDue: 2 * time.Minute}), email.NewKeys(s.keys)
}

// enterCaller has the link queued that proves the address of another caller.
func enterCaller(t *testing.T, store *postgres.DB, keys *email.Keys, i int) {
	t.Helper()
	c, hashes := contactAt(keys, fmt.Sprintf("caller%d@host%d.example.org", i, i%4))
	token := email.NewToken()
	proof := postgres.Proof{Hash: email.TokenHash(token), Body: func(contact uuid.UUID) ([]byte, error) {
		return json.Marshal(email.SealedCode{Code: keys.SealToken(contact, token)})
	}}
	if _, err := store.Callers.Set(t.Context(), notification.Reader{UserID: event.NewCaller()}, uuid.New(), c, hashes, proof); err != nil {
		t.Fatal(err)
	}
}

func reader(i int) notification.Reader {
	return notification.Reader{UserID: fmt.Sprintf("reader%d", i)}
}

// A mailbox accepts every mail.
type mailbox struct {
	address string
	mu      sync.Mutex
	mails   []arrived
}

type arrived struct{ to, id string }

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &mailbox{address: listener.Addr().String()}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &delivery{box: b}, nil }))
	server.Domain = "mail.example.org"
	server.ErrorLog = discard{}
	go func() { _ = server.Serve(listener) }() // it ends with its listener
	t.Cleanup(func() { _ = server.Close() })
	return b
}

func (b *mailbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.mails)
}

// byID returns who got the mail of each Message-ID, and how many ids went to
// several.
func (b *mailbox) byID() (mails map[string]string, different int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	mails = make(map[string]string)
	for _, m := range b.mails {
		if to, ok := mails[m.id]; ok && to != m.to {
			different++
		}
		mails[m.id] = m.to
	}
	return mails, different
}

// A delivery is one session of the mail server.
type delivery struct {
	box *mailbox
	to  string
}

func (d *delivery) Reset()                                    {}
func (d *delivery) Logout() error                             { return nil }
func (d *delivery) Mail(string, *smtp.MailOptions) error      { return nil }
func (d *delivery) Rcpt(to string, _ *smtp.RcptOptions) error { d.to = to; return nil }

func (d *delivery) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err // it broke off
	}
	m, err := netmail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return err
	}
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	d.box.mails = append(d.box.mails, arrived{d.to, m.Header.Get("Message-ID")})
	return nil
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}
