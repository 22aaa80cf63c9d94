package email_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime"
	"net"
	netmail "net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-message"
	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-smtp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// The mail about a new status is what providers ask for: signed, with an address
// of its own for bounces, and with one click to end it.
func TestMailOfAStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
	w.contact("bob", "bob@example.org") // who wants nothing at once
	w.start()
	report := w.status("ann", "Pothole — Jalan Merdeka", true)
	w.status("bob", "Lamp", true)
	w.due()
	mail := w.server.waitFor(1)[0]
	w.waitFor(`select count(*) from deliveries where state = 'done'`, 1)

	m, err := netmail.ReadMessage(bytes.NewReader(mail.data))
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`^bounce\+([a-z2-7]{26})@bounces\.city\.example\.org$`).FindStringSubmatch(mail.from)
	if token == nil || mail.to != "ann@example.org" || mail.ret != smtp.DSNReturnHeaders {
		t.Fatalf("envelope from %q to %q, RET=%s", mail.from, mail.to, mail.ret)
	}
	if id, ok := w.keys.Delivery(token[1]); !ok || w.number(`select id from deliveries where state = 'done'`) != id {
		t.Errorf("bounces of delivery %d, %t", id, ok)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != "Report “Pothole — Jalan Merdeka”: now in progress" {
		t.Errorf("subject %q, %v", subject, err)
	}
	for name, want := range map[string]string{
		"From": `"Kota Bogor" <no-reply@city.example.org>`, "To": "<ann@example.org>", "Auto-Submitted": "auto-generated", "Content-Language": "en",
		"Message-Id": "<" + token[1] + "@city.example.org>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"User-Agent", "X-Mailer", "Reply-To", "Cc"} {
		if got := m.Header.Get(name); got != "" {
			t.Errorf("%s: %q, want none", name, got)
		}
	}
	if got := m.Header.Get("List-Unsubscribe"); !regexp.MustCompile(`^<https://city\.example\.org/u/[\w-]{22}>$`).MatchString(got) {
		t.Errorf("List-Unsubscribe: %q", got)
	}
	_, text, html := mail.read(t)
	for _, want := range []string{"https://city.example.org/privacy", "https://city.example.org/imprint", "Privacy notice"} {
		if !strings.Contains(text, want) || !strings.Contains(html, want) {
			t.Errorf("%s is not in both parts of the mail", want)
		}
	}
	if strings.Contains(text, "CityConnect") || !strings.Contains(text, "Kota Bogor") || !strings.Contains(html, "Kota Bogor") {
		t.Errorf("the mail is not the city's: %s", html)
	}
	if !strings.Contains(text, report.String()) || !strings.Contains(html, report.String()) {
		t.Errorf("text %q, HTML %q", text, html)
	}
	w.verify(mail.data)
}

// verify checks the signature with another library, and what it covers.
func (w *world) verify(mail []byte) {
	w.t.Helper()
	key := base64.StdEncoding.EncodeToString(w.dkim.Public().(ed25519.PublicKey))
	verifications, err := dkim.VerifyWithOptions(bytes.NewReader(mail), &dkim.VerifyOptions{
		LookupTXT: func(domain string) ([]string, error) {
			if domain != "test._domainkey.city.example.org" {
				return nil, fmt.Errorf("no record of %s", domain)
			}
			return []string{"v=DKIM1; k=ed25519; p=" + key}, nil
		},
	})
	if err != nil || len(verifications) != 1 || verifications[0].Err != nil {
		for _, v := range verifications {
			err = errors.Join(err, v.Err)
		}
		w.t.Fatalf("%d signatures, %v; want one that verifies", len(verifications), err)
	}
	signed := strings.ToLower(strings.Join(verifications[0].HeaderKeys, " ") + " ")
	for _, name := range []string{"from", "to", "subject", "date", "message-id", "list-unsubscribe", "list-unsubscribe-post"} {
		if !strings.Contains(signed, name+" ") {
			w.t.Errorf("the signature does not cover %s", name)
		}
	}
}

// Each answer has its consequence, for the mail and for the address.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		at      string
		code    int
		status  smtp.EnhancedCode
		class   string
		state   string // of the delivery
		retries int
		contact string
	}{
		{"greylisted", "RCPT", 450, smtp.EnhancedCode{4, 2, 0}, "deferred", "waiting", 1, "active"},
		{"throttled", "RCPT", 451, smtp.EnhancedCode{4, 7, 1}, "throttled", "waiting", 0, "active"},
		{"throttled after the text", "END", 454, smtp.EnhancedCode{4, 7, 0}, "throttled", "waiting", 0, "active"},
		{"mailbox is full", "RCPT", 552, smtp.EnhancedCode{5, 2, 2}, "full", "waiting", 1, "active"},
		{"no such user", "RCPT", 550, smtp.EnhancedCode{5, 1, 1}, "address", "dead", 0, "bounced"},
		{"no such user, after the text", "END", 550, smtp.EnhancedCode{5, 1, 1}, "address", "dead", 0, "bounced"},
		{"mailbox has moved", "RCPT", 551, smtp.EnhancedCode{5, 1, 6}, "address", "dead", 0, "bounced"},
		{"the domain takes no mail", "RCPT", 556, smtp.EnhancedCode{5, 1, 10}, "address", "dead", 0, "bounced"},
		{"mailbox is disabled", "RCPT", 550, smtp.EnhancedCode{5, 2, 1}, "address", "dead", 0, "bounced"},
		{"receiving mail at a rate that prevents more", "RCPT", 550, smtp.EnhancedCode{5, 2, 1}, "unclear", "waiting", 1, "active"},
		{"no such user, to the sender", "MAIL", 550, smtp.EnhancedCode{5, 1, 1}, "policy", "waiting", 1, "active"},
		{"refused without a status", "RCPT", 550, smtp.NoEnhancedCode, "unclear", "waiting", 1, "active"},
		{"refused without a status, after the text", "END", 554, smtp.NoEnhancedCode, "unclear", "waiting", 1, "active"},
		{"not local", "RCPT", 551, smtp.NoEnhancedCode, "unclear", "waiting", 1, "active"},
		{"name not allowed", "RCPT", 553, smtp.NoEnhancedCode, "unclear", "waiting", 1, "active"},
		{"undefined", "RCPT", 550, smtp.EnhancedCode{5, 0, 0}, "unclear", "waiting", 1, "active"},
		{"address, undefined", "RCPT", 550, smtp.EnhancedCode{5, 1, 0}, "unclear", "waiting", 1, "active"},
		{"no such domain", "RCPT", 550, smtp.EnhancedCode{5, 1, 2}, "unclear", "waiting", 1, "active"},
		{"mailbox, undefined", "RCPT", 550, smtp.EnhancedCode{5, 2, 0}, "unclear", "waiting", 1, "active"},
		{"access denied", "RCPT", 550, smtp.EnhancedCode{5, 4, 1}, "unclear", "waiting", 1, "active"},
		{"sender's address", "RCPT", 550, smtp.EnhancedCode{5, 1, 7}, "policy", "waiting", 1, "active"},
		{"sender's domain", "RCPT", 550, smtp.EnhancedCode{5, 1, 8}, "policy", "waiting", 1, "active"},
		{"bad outbound sender", "END", 550, smtp.EnhancedCode{5, 1, 8}, "policy", "waiting", 1, "active"},
		{"daily limit of the sender", "RCPT", 550, smtp.EnhancedCode{5, 4, 5}, "policy", "waiting", 1, "active"},
		{"system is not configured", "RCPT", 550, smtp.EnhancedCode{5, 3, 5}, "policy", "waiting", 1, "active"},
		{"sender is not signed in", "RCPT", 530, smtp.EnhancedCode{5, 7, 0}, "policy", "waiting", 1, "active"},
		{"relaying denied", "RCPT", 554, smtp.EnhancedCode{5, 7, 1}, "policy", "waiting", 1, "active"},
		{"protocol", "RCPT", 503, smtp.EnhancedCode{5, 5, 1}, "policy", "waiting", 1, "active"},
		{"policy", "END", 550, smtp.EnhancedCode{5, 7, 1}, "policy", "waiting", 1, "active"},
		{"sender is refused", "MAIL", 550, smtp.EnhancedCode{5, 1, 8}, "policy", "waiting", 1, "active"},
		{"sending is paused", "MAIL", 554, smtp.NoEnhancedCode, "policy", "waiting", 1, "active"},
		{"text is refused", "END", 554, smtp.EnhancedCode{5, 6, 0}, "refused", "dead", 0, "active"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
			w.server.script(func(at, _ string, _ int) action {
				if at == tt.at {
					return action{err: &smtp.SMTPError{Code: tt.code, EnhancedCode: tt.status, Message: "<ann@example.org> says no: " + tt.name}}
				}
				return action{}
			})
			w.start()
			w.status("ann", "Pothole", true)
			w.due()
			w.waitFor(fmt.Sprintf(`select count(*) from deliveries where last_class = '%s' and state = '%s' and retries = %d and attempts = 1`,
				tt.class, tt.state, tt.retries), 1)
			w.waitFor(`select count(*) from contacts where state = '`+tt.contact+`'`, 1)
			for _, table := range []string{"deliveries", "delivery_attempts", "mail_bounces", "lanes"} {
				if n := w.number(`select count(*) from ` + table + ` t where t::text like '%ann@%'`); n != 0 {
					t.Errorf("%s has the address", table)
				}
			}
			if strings.Contains(w.log.String(), "ann@") {
				t.Errorf("the log has the address: %s", w.log.String())
			}
		})
	}
}

// A connection that is dropped at any command before the final dot costs no mail:
// it arrives, once.
func TestDroppedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"HELO", "MAIL", "RCPT", "TEXT"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
			drops := 2
			if at == "TEXT" {
				// The text is short: all of it is sent, final dot included, before the
				// sender notices. It cannot know, and tries once more.
				drops = 1
			}
			w.server.script(func(where, _ string, n int) action { return action{drop: where == at && n < drops} })
			w.start()
			w.status("ann", "Pothole", true)
			w.due()
			w.dueUntil(`select count(*) from deliveries where state = 'done'`, 1)
			if got := w.server.accepted(); len(got) != 1 {
				t.Errorf("%d mails, want 1", len(got))
			}
		})
	}
}

// A mail whose answer is lost after the final dot may have arrived: it is sent
// once more, not before ten minutes are over, under the same Message-ID, and then
// left.
func TestUncertain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
	w.server.script(func(at, _ string, _ int) action { return action{drop: at == "END"} })
	w.start()
	w.status("ann", "Pothole", true)
	w.due()
	w.waitFor(`select count(*) from deliveries where state = 'waiting' and last_class = 'uncertain' and attempts = 1
		and due_at > now() + interval '9 minutes'`, 1)
	w.due()
	w.waitFor(`select count(*) from deliveries where state = 'dead' and last_class = 'uncertain' and attempts = 2`, 1)
	mails := w.server.accepted()
	if len(mails) != 2 || messageID(mails[0].data) == "" || messageID(mails[0].data) != messageID(mails[1].data) {
		t.Errorf("%d mails, want 2 of one Message-ID", len(mails))
	}
}

// While the mail server is away no mail spends an attempt. When it is back all
// arrive, once.
func TestMailServerIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	addr := w.server.close()
	const n = 20
	for i := range n {
		user := fmt.Sprintf("user%d", i)
		w.contact(user, user+"@example.org", event.StatusUpdatedKey)
	}
	w.start()
	for i := range n {
		w.status(fmt.Sprintf("user%d", i), "Pothole", true)
	}
	w.due()
	w.logSays("claiming deliveries failed, will retry")
	w.logSays("claiming deliveries failed, will retry") // more than once
	if got := w.number(`select coalesce(sum(attempts), 0) from deliveries`); got != 0 {
		t.Errorf("%d attempts at a server that is away, want none", got)
	}
	w.server.listen(addr)
	w.dueUntil(`select count(*) from deliveries where state = 'done'`, n)
	if got := w.server.accepted(); len(got) != n {
		t.Errorf("%d mails, want %d", len(got), n)
	}
}

// A host that defers everything holds up no other, and has no more attempts than
// the schedule says.
func TestHostThatDefers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 40
	for i := range n {
		w.contact(fmt.Sprintf("g%d", i), fmt.Sprintf("g%d@gmail.com", i), event.StatusUpdatedKey)
		w.contact(fmt.Sprintf("y%d", i), fmt.Sprintf("y%d@yahoo.com", i), event.StatusUpdatedKey)
	}
	w.server.script(func(at, to string, _ int) action {
		if at == "RCPT" && strings.HasSuffix(to, "@gmail.com") {
			return action{err: &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 4, 1}, Message: "later"}}
		}
		return action{}
	})
	w.start()
	for i := range n {
		w.status(fmt.Sprintf("g%d", i), "Pothole", true)
		w.status(fmt.Sprintf("y%d", i), "Pothole", true)
	}
	w.due()
	w.waitFor(`select count(*) from deliveries where lane = 'yahoo.com' and state = 'done'`, n)
	if got := w.number(`select count(*) from deliveries where lane = 'gmail.com' and (state <> 'waiting' or attempts > 1)`); got != 0 {
		t.Errorf("%d of the host that defers are given up or tried beyond the schedule", got)
	}
	w.server.script(nil)
	w.exec(`update lanes set open_until = null, failures = 0`)
	w.dueUntil(`select count(*) from deliveries where state = 'done'`, 2*n)
	if got := w.server.accepted(); len(got) != 2*n {
		t.Errorf("%d mails, want %d", len(got), 2*n)
	}
}

// A reader who has read it on the page, has turned it off or has removed the address
// gets no mail; during quiet hours it waits.
func TestWhatIsNotSent(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]string{
		"read":       `insert into read_marks (reader, stream_id, seq) select id, id, last_seq from streams on conflict (reader, stream_id) do update set seq = excluded.seq`,
		"unwanted":   `update contacts set kinds = '{}'`,
		"no_contact": `delete from contacts`,
		"empty":      `delete from notifications`,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
			w.status("ann", "Pothole", true)
			w.exec(change)
			w.due()
			w.start()
			w.waitFor(`select count(*) from deliveries where state = 'cancelled' and last_class = '`+reason+`' and attempts = 0`, 1)
			if got := w.server.accepted(); len(got) != 0 {
				t.Errorf("%d mails, want none", len(got))
			}
		})
	}
	t.Run("overtaken", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
		report := uuid.New()
		moved := func(version int64, status event.Status) {
			s := subject(report, "ann", "Pothole", true)
			s.ReportVersion = version
			w.apply(postgres.Message{ID: uuid.NewString(), Value: notification.Of(&event.StatusUpdate{Subject: s, NewStatus: status}, "ann")})
		}
		moved(4, event.Resolved)
		moved(3, event.InProgress) // came later, and is older
		moved(2, event.Pending)
		w.status("ann", "Another", true)
		w.due()
		w.start()
		w.waitFor(`select count(*) from deliveries where state = 'cancelled' and last_class = 'overtaken' and attempts = 0`, 2)
		w.server.waitFor(2)
	})
	// A reply says something of its own, and nothing of the status: each is sent,
	// and none takes the place of a status.
	t.Run("replied", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
		report := uuid.New()
		for version, m := range []event.StatusUpdate{
			{NewStatus: event.InProgress, Reply: true, Note: "We look at it on Thursday."}, {NewStatus: event.Resolved},
			{NewStatus: event.Resolved, Reply: true, Note: "The lamp is of a new kind."},
		} {
			m.Subject = subject(report, "ann", "Pothole", true)
			m.ReportVersion = int64(version) + 2
			w.apply(postgres.Message{ID: uuid.NewString(), Value: notification.Of(&m, "ann")})
		}
		w.due()
		w.start()
		var subjects []string
		for _, mail := range w.server.waitFor(3) {
			subject, _, _ := mail.read(t)
			subjects = append(subjects, subject)
		}
		if slices.Sort(subjects); !slices.Equal(subjects, []string{"Report “Pothole”: now resolved", "Report “Pothole”: the city has replied", "Report “Pothole”: the city has replied"}) {
			t.Errorf("the mails are %q", subjects)
		}
	})
	t.Run("quiet hours", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
		w.exec(`update contacts set zone = 'UTC', quiet_from = (m + 1435) % 1440, quiet_to = (m + 60) % 1440
			from (select (extract(hour from now() at time zone 'UTC') * 60 + extract(minute from now() at time zone 'UTC'))::int as m) as clock`)
		w.status("ann", "Pothole", true)
		w.due()
		w.start()
		w.waitFor(`select count(*) from deliveries where state = 'waiting' and last_class = 'quiet_hours' and attempts = 0
			and due_at between now() + interval '50 minutes' and now() + interval '61 minutes'`, 1)
		w.exec(`update contacts set quiet_from = null, quiet_to = null`)
		w.due()
		w.server.waitFor(1)
	})
}

// Only reporters who chose so are mailed about an anonymous report. Their mail says
// that there is news, and nothing of the report or its reporter leaves the
// database: not in the envelope, a header, the text, the ledger or the log.
func TestAnonymousReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, user := range []string{"canary-user", "other-user"} {
		w.contact(user, "inbox-"+user[:5]+"@example.org", event.StatusUpdatedKey, event.VoteReceivedKey)
	}
	chosen, silent := uuid.New(), uuid.New()
	if err := w.store.Contacts.SetConsent(t.Context(), notification.Reader{UserID: "canary-user"}, chosen, true); err != nil {
		t.Fatal(err)
	}
	// Consent for a report of somebody else opens nothing.
	if err := w.store.Contacts.SetConsent(t.Context(), notification.Reader{UserID: "other-user"}, chosen, true); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.statusOf(chosen, "canary-user", "Canary title", false)
	w.statusOf(silent, "canary-user", "Canary title", false)
	w.statusOf(uuid.New(), "other-user", "Canary title", false)
	if got := w.number(`select count(*) from deliveries`); got != 1 {
		t.Fatalf("%d mails wait, want the one that was chosen", got)
	}
	w.due()
	mail := w.server.waitFor(1)[0]
	w.waitFor(`select count(*) from deliveries where state = 'done'`, 1)
	_, text, html := mail.read(t)
	everything := mail.from + "\n" + string(mail.data) + "\n" + text + html + w.log.String()
	for _, secret := range []string{"anary title", "canary-user", chosen.String(), "Canary note", "in progress", "-6.5", "106.7"} {
		if strings.Contains(everything, secret) {
			t.Errorf("%q is in the mail or the log:\n%s", secret, everything)
		}
	}
	for _, table := range []string{"deliveries", "delivery_attempts", "lanes", "mail_bounces", "unsubscribe_tokens", "contacts"} {
		for _, secret := range []string{"anary title", "canary-user", chosen.String(), "inbox-"} {
			if n := w.number(`select count(*) from `+table+` t where t::text like '%'||$1||'%'`, secret); n != 0 {
				t.Errorf("%s has %q", table, secret)
			}
		}
	}
	if w.number(`select count(*) from deliveries d join notifications n on d.message_id = n.message_id`) != 0 {
		t.Error("the row of the mail has the id of the event, which webhooks have, too")
	}
	w.verify(mail.data)
}

// A follower of a report is mailed about its new status, too; not about that of an
// anonymous one, which no mail may name.
func TestFollowers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	public, anonymous := uuid.New(), uuid.New()
	for _, user := range []string{"ann", "bob"} {
		w.contact(user, user+"@example.org", event.StatusUpdatedKey)
	}
	for _, report := range []uuid.UUID{public, anonymous} {
		if err := w.store.Follows.Follow(t.Context(), notification.Reader{UserID: "bob"}, report); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.statusOf(anonymous, "ann", "Canary title", false)
	w.statusOf(public, "ann", "Pothole", true)
	if got := w.number(`select count(*) from deliveries`); got != 2 {
		t.Fatalf("%d mails wait, want one to each about the public report", got)
	}
	w.due()
	to := make(map[string]bool)
	for _, mail := range w.server.waitFor(2) {
		to[mail.to] = true
		if bytes.Contains(mail.data, []byte("Canary title")) {
			t.Errorf("a mail names the anonymous report:\n%s", mail.data)
		}
	}
	if !to["ann@example.org"] || !to["bob@example.org"] {
		t.Errorf("mails to %v, want both", to)
	}
}

// A digest is about the numbers since the one before: each notification is in one
// digest, or in a mail of its own, and nothing is sent when there is nothing new.
func TestDigests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reader := notification.Reader{UserID: "ann"}
	w.contact("ann", "ann@example.org", event.VoteReceivedKey)
	w.status("ann", "Before the digest", true)
	if err := w.store.Digests.Set(t.Context(), reader, email.DigestSettings{Frequency: email.Daily, At: email.DefaultDigestAt}); err != nil {
		t.Fatal(err)
	}
	w.start()
	claim := func() {
		t.Helper()
		w.exec(`update digests set next_at = now()`)
		var claimers sync.WaitGroup
		for i := range 4 { // two replicas at once
			claimers.Go(func() {
				err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
					_, err := w.store.Digests.Claim(t.Context(), tx, email.Half(i%2), 100, time.Hour)
					return err
				})
				if err != nil {
					t.Errorf("claim: %v", err)
				}
			})
		}
		claimers.Wait()
	}
	claim()
	if got := w.number(`select count(*) from deliveries where kind = 'digest'`); got != 0 {
		t.Fatalf("%d digests of nothing", got)
	}
	w.status("ann", "First", true)
	w.status("ann", "Second", true)
	w.vote("ann", "Told by a mail of its own")
	w.status("ann", "Anonymous title", false)
	claim()
	claim() // the same day again, with nothing new
	if got := w.number(`select count(*) from deliveries where kind = 'digest'`); got != 1 {
		t.Fatalf("%d digests, want 1", got)
	}
	if got := w.number(`select count(*) from deliveries where kind = 'digest' and due_at between now() - interval '1 minute' and now() + interval '1 hour'`); got != 1 {
		t.Error("the digest is not due within the spread")
	}
	w.due()
	mails := w.server.waitFor(2)
	var digest string
	for _, m := range mails {
		if _, text, _ := m.read(t); strings.Contains(text, "First") {
			digest = text
		}
	}
	for title, want := range map[string]bool{
		"First": true, "Second": true, "Before the digest": false, "Told by a mail": false, "Anonymous title": false,
	} {
		if strings.Contains(digest, title) != want {
			t.Errorf("%q in the digest: %t, want %t\n%s", title, !want, want, digest)
		}
	}
	w.status("ann", "Third", true)
	w.status("ann", "Fourth", true)
	claim()
	if got := w.number(`select count(*) from deliveries a join deliveries b on b.id > a.id where a.kind = 'digest' and b.kind = 'digest'
		and convert_from(a.body, 'UTF8')::json->>'to' = convert_from(b.body, 'UTF8')::json->>'after'`); got != 1 {
		t.Error("the second digest does not begin where the first ended")
	}
	w.exec(`update read_marks set seq = 1000`) // all is read before it is sent
	w.due()
	w.waitFor(`select count(*) from deliveries where kind = 'digest' and state = 'cancelled' and last_class = 'read'`, 1)
}

// Servers that refuse one address after the other have lost their list, or take
// the city for a spammer: nobody loses their address, all mails wait, and nothing
// is sent for a while.
func TestBurstOfRefusedAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const people = 9
	for i := range people {
		name := fmt.Sprintf("p%d", i)
		w.contact(name, name+"@example.org", event.StatusUpdatedKey)
	}
	w.server.script(func(at, _ string, _ int) action {
		if at == "RCPT" {
			return action{err: &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}}
		}
		return action{}
	})
	w.start()
	for i := range people {
		w.status(fmt.Sprintf("p%d", i), "Pothole", true)
	}
	w.due()
	w.logSays("circuit opened: no address is given up")
	w.waitFor(`select count(*) from contacts where state = 'active'`, people)
	w.waitFor(`select count(*) from deliveries where state = 'waiting'`, people)
	// A status report of the same kind, which comes later, changes nothing either.
	id := w.number(`select min(id) from deliveries`)
	if err := w.store.Mails.MailBounced(t.Context(), email.Bounce{Delivery: id, Code: "5.2.1", Hard: true}); err != nil {
		t.Fatal(err)
	}
	w.waitFor(`select count(*) from contacts where state = 'active'`, people)
}

// Some addresses that are refused among many that are not are given up.
func TestRefusedAddressesAmongGoodOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const good, bad = 8, 6
	for i := range good + bad {
		name := fmt.Sprintf("p%d", i)
		w.contact(name, name+"@example.org", event.StatusUpdatedKey)
	}
	w.start()
	for i := range good {
		w.status(fmt.Sprintf("p%d", i), "Pothole", true)
	}
	w.due()
	w.waitFor(`select count(*) from deliveries where state = 'done'`, good)
	w.server.script(func(at, _ string, _ int) action {
		if at == "RCPT" {
			return action{err: &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}}
		}
		return action{}
	})
	for i := range bad {
		w.status(fmt.Sprintf("p%d", good+i), "Pothole", true)
	}
	w.due()
	w.waitFor(`select count(*) from contacts where state = 'bounced'`, bad)
}

// A bounce that is hard, soft ones on three days, and a complaint end what is
// sent. Those that are the sender's fault never do.
func TestBounces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
	w.start()
	for i, want := range []string{"active", "active", "bounced"} {
		w.status("ann", "Pothole", true)
		w.due()
		w.waitFor(`select count(*) from deliveries where state = 'done'`, i+1)
		id := w.number(`select max(id) from deliveries`)
		for range 2 { // it comes twice, and counts once
			for _, code := range []string{"4.2.2", "5.1.8", "5.1.7", "5.7.1"} {
				if err := w.store.Mails.MailBounced(t.Context(), email.Bounce{Delivery: id, Code: code}); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.waitFor(`select count(*) from contacts where state = '`+want+`'`, 1)
		w.exec(`update mail_bounces set at = at - interval '1 day'`)
	}
	w.status("ann", "Pothole", true)
	if got := w.number(`select count(*) from deliveries`); got != 3 {
		t.Errorf("%d mails, want none to an address that takes nothing", got)
	}
	complaint := email.Bounce{Delivery: w.number(`select max(id) from deliveries`), Code: "complaint", Hard: true}
	if err := w.store.Mails.MailBounced(t.Context(), complaint); err != nil {
		t.Fatal(err)
	}
	w.waitFor(`select count(*) from contacts where state = 'complained'`, 1)
	if err := w.store.Mails.MailBounced(t.Context(), email.Bounce{Delivery: 1 << 40, Code: "5.1.1", Hard: true}); err != nil {
		t.Errorf("a bounce of a mail that is gone: %v", err)
	}
}

// A server without the encryption that was asked for gets nothing.
func TestNoEncryption(t *testing.T) {
	t.Parallel()
	for _, way := range []email.TLS{email.StartTLS, email.Implicit} {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.config.Server.TLS = way
			w.config.MailTimeout = time.Second // it waits for a greeting that is not encrypted
			w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
			w.start()
			w.status("ann", "Pothole", true)
			w.due()
			w.logSays("will retry")
			if got := w.server.commands("MAIL"); got != 0 {
				t.Errorf("%d senders were named in clear text", got)
			}
		})
	}
}

// A server whose certificate is out of date, another's, or signed by nobody whom we
// know, is named nobody. One with a good certificate gets the mail.
func TestCertificates(t *testing.T) {
	t.Parallel()
	next := time.Now().Add(time.Hour)
	for _, way := range []email.TLS{email.StartTLS, email.Implicit} {
		for name, tt := range map[string]struct {
			until       time.Time
			host        string
			known, good bool
		}{
			"good":        {next, "127.0.0.1", true, true},
			"out of date": {time.Now().Add(-time.Minute), "127.0.0.1", true, false},
			"another's":   {next, "127.0.0.2", true, false},
			"unknown":     {next, "127.0.0.1", false, false},
		} {
			t.Run(string(way)+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				certificate, roots := newCertificate(t, tt.host, tt.until)
				w.server.tls, w.server.implicit = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, way == email.Implicit
				w.server.listen(w.server.close())
				w.config.Server.TLS = way
				if w.roots = x509.NewCertPool(); tt.known {
					w.roots = roots
				}
				w.contact("ann", "ann@example.org", event.StatusUpdatedKey)
				w.start()
				w.status("ann", "Pothole", true)
				w.due()
				if tt.good {
					w.waitFor(`select count(*) from deliveries where state = 'done'`, 1)
					return
				}
				w.logSays("the mail server does not take mails, will retry")
				if got := w.server.commands("MAIL"); got != 0 {
					t.Errorf("%d senders were named to a server that is not known", got)
				}
			})
		}
	}
}

// newCertificate returns a certificate of host that is good until a moment, signed
// by itself, and the roots that know it.
func newCertificate(t *testing.T, host string, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: until.Add(-24 * time.Hour), NotAfter: until, IPAddresses: []net.IP{net.ParseIP(host)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, roots
}

func messageID(mail []byte) string {
	m, err := netmail.ReadMessage(bytes.NewReader(mail))
	if err != nil {
		return ""
	}
	return m.Header.Get("Message-ID")
}

// A world is a database, a mail server that answers by script, and workers.
type world struct {
	t      *testing.T
	pool   *pgxpool.Pool
	store  *postgres.DB
	ring   *event.Keyring
	keys   *email.Keys
	dkim   ed25519.PrivateKey
	config email.Config
	server *mailServer
	roots  *x509.CertPool // that the server's certificate is checked with
	log    logBuffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool := pgtest.Notification(t)
	ring, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, pool: pool, store: postgres.New(pool, postgres.Options{Mail: true, MailDue: 2 * time.Minute}), ring: ring, keys: email.NewKeys(ring), dkim: key, server: newMailServer(t)}
	port := w.server.listen("127.0.0.1:0").Port
	w.config = email.Config{
		MailURL: "set", MailBounceDomain: "bounces.city.example.org", MailRate: 10_000, MailConnections: 4, MailTimeout: 5 * time.Second,
		MailRetryDelays: []time.Duration{time.Minute, time.Minute, time.Minute, time.Minute}, MailDKIMSelector: "test", PublicURL: "https://city.example.org",
		Server: email.Server{Host: "127.0.0.1", Port: port, TLS: email.NoTLS},
		From:   &netmail.Address{Name: "Kota Bogor", Address: "no-reply@city.example.org"}, Signer: key,
		CityLinks: config.CityLinks{Privacy: "https://city.example.org/privacy", Imprint: "https://city.example.org/imprint", Emergency: "112"},
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", w.log.String())
		}
	})
	return w
}

// start starts a worker.
func (w *world) start() (stop func()) {
	w.t.Helper()
	return w.startMeasured(prometheus.NewRegistry())
}

// startMeasured starts a worker with the registry.
func (w *world) startMeasured(reg prometheus.Registerer) (stop func()) {
	w.t.Helper()
	relay := email.NewRelay(&w.config, w.roots)
	log := zerolog.New(&w.log)
	sender := email.NewSender(&w.config, w.store.Mails, w.keys, relay, reg, log)
	d := ledger.New(w.config.Ledger(), sender, w.store.Ledger, reg, log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer relay.Close()
		if err := d.Run(ctx); err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(stop)
	return stop
}

// contact gives the user a proven address and the kinds of mail that they chose.
func (w *world) contact(user, address string, kinds ...event.Key) {
	w.t.Helper()
	reader := notification.Reader{UserID: user}
	c := email.Contact{ID: uuid.New(), Lane: w.keys.Lane(address), Language: wording.English, Zone: "Asia/Jakarta"}
	c.Address = w.keys.SealAddress(c.ID, address)
	if _, err := w.store.Contacts.Set(w.t.Context(), reader, c, w.keys.AddressHashes(address)); err != nil {
		w.t.Fatal(err)
	}
	wanted := make([]string, len(kinds))
	for i, kind := range kinds {
		wanted[i] = string(kind)
	}
	w.exec(`update contacts set state = 'active', kinds = $2 where id = $1`, c.ID, wanted)
}

// status applies a new status of a report of the user's.
func (w *world) status(user, title string, public bool) uuid.UUID {
	w.t.Helper()
	report := uuid.New()
	w.statusOf(report, user, title, public)
	return report
}

func (w *world) statusOf(report uuid.UUID, user, title string, public bool) {
	w.t.Helper()
	m := &event.StatusUpdate{Subject: subject(report, user, title, public), NewStatus: event.InProgress, Note: "Canary note"}
	w.apply(postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, user)})
}

func (w *world) vote(user, title string) {
	w.t.Helper()
	m := &event.VoteReceived{Subject: subject(uuid.New(), user, title, true), VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(3))}
	w.apply(postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, user)})
}

func subject(report uuid.UUID, user, title string, public bool) event.Subject {
	s := event.Subject{ReportID: report, ReportVersion: 2, ReportTitle: title, Timestamp: time.Now().Unix(), Latitude: new(-6.5944), Longitude: new(106.7892)}
	if public {
		s.ReporterID = user
	}
	return s
}

func (w *world) apply(m postgres.Message) {
	w.t.Helper()
	for range 2 { // the broker delivers it twice
		if _, err := w.store.Effects.Apply(w.t.Context(), "test", []postgres.Message{m}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// due has everything that waits be due now.
func (w *world) due() {
	w.t.Helper()
	w.exec(`update deliveries set due_at = now() where state = 'waiting'`)
}

// dueUntil does so again and again, and closes circuits, until the query returns
// want.
func (w *world) dueUntil(sql string, want int64) {
	w.t.Helper()
	eventually.True(w.t, fmt.Sprintf("%s: want %d", sql, want), func() bool {
		w.exec(`update deliveries set due_at = now() where state = 'waiting' and due_at > now() + interval '1 second'`)
		return w.number(sql) == want
	})
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) number(sql string, args ...any) (n int64) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// waitFor waits until the query of one number returns want.
func (w *world) waitFor(sql string, want int) {
	w.t.Helper()
	eventually.True(w.t, fmt.Sprintf("%s: want %d", sql, want), func() bool { return w.number(sql) == int64(want) })
}

// logSays waits for a further line of the log with the text.
func (w *world) logSays(text string) {
	w.t.Helper()
	eventually.True(w.t, fmt.Sprintf("the log says %q", text), func() bool { return w.log.next(text) })
}

// A logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	read int // up to where next has looked
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBuffer) next(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := strings.Index(b.text.String()[b.read:], text)
	if i >= 0 {
		b.read += i + len(text)
	}
	return i >= 0
}

// A mailServer answers by script, and keeps what it accepted.
type mailServer struct {
	t      *testing.T
	mu     sync.Mutex
	act    func(at, to string, n int) action
	counts map[string]int // of commands
	mails  []received
	signal chan struct{} // closed and replaced with each mail
	server *smtp.Server
	socket net.Listener
	addr   *net.TCPAddr

	tls      *tls.Config // nil means without encryption
	implicit bool        // from the first byte
}

// An action is what a server does at HELO, MAIL, RCPT, TEXT (within the text) or
// END (after the final dot): accept, answer with an error, or drop the connection.
type action struct {
	err  *smtp.SMTPError
	drop bool
}

type received struct {
	from, to string
	ret      smtp.DSNReturn
	data     []byte
}

// read returns a mail's subject, and what it says as text and as HTML.
func (m received) read(t *testing.T) (subject, text, html string) {
	t.Helper()
	root, err := message.Read(bytes.NewReader(m.data))
	if err != nil {
		t.Fatal(err)
	}
	if subject, err = root.Header.Text("Subject"); err != nil {
		t.Fatal(err)
	}
	err = root.Walk(func(_ []int, part *message.Entity, err error) error {
		if err != nil {
			return err
		}
		kind, _, err := part.Header.ContentType()
		if err != nil || strings.HasPrefix(kind, "multipart/") {
			return err
		}
		body, err := io.ReadAll(part.Body)
		switch kind {
		case "text/plain":
			text = string(body)
		case "text/html":
			html = string(body)
		}
		return err
	})
	if err != nil || text == "" || html == "" {
		t.Fatalf("text %q, HTML %q, error %v", text, html, err)
	}
	return subject, text, html
}

func newMailServer(t *testing.T) *mailServer {
	return &mailServer{t: t, counts: make(map[string]int), signal: make(chan struct{})}
}

// listen starts the server.
func (s *mailServer) listen(addr string) *net.TCPAddr {
	s.t.Helper()
	listener, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		if a := s.at("HELO", ""); a.drop {
			_ = c.Conn().Close()
		}
		return &session{server: s, conn: c}, nil
	}))
	server.Domain, server.EnableDSN = "mail.example.org", true
	server.ErrorLog = nolog{}
	if server.TLSConfig = s.tls; s.implicit {
		listener = tls.NewListener(listener, s.tls)
	}
	s.server, s.socket, s.addr = server, listener, listener.Addr().(*net.TCPAddr)
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, smtp.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.t.Logf("mail server: %v", err)
		}
	}()
	s.t.Cleanup(func() { _ = server.Close() })
	return s.addr
}

// close ends the server with its connections, and returns where it was.
func (s *mailServer) close() string {
	_ = s.server.Close()
	_ = s.socket.Close() // the server may not serve yet
	return s.addr.String()
}

// script sets what the server does; nil accepts everything.
func (s *mailServer) script(act func(at, to string, n int) action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.act = act
}

// at counts a command, from 0, and returns what to do.
func (s *mailServer) at(command, to string) action {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.counts[command]
	s.counts[command]++
	if s.act == nil {
		return action{}
	}
	return s.act(command, to, n)
}

func (s *mailServer) commands(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[command]
}

func (s *mailServer) keep(m received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, m)
	close(s.signal)
	s.signal = make(chan struct{})
}

// accepted returns the mails that the server has, also those whose sender did not
// learn it.
func (s *mailServer) accepted() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.mails...)
}

// waitFor waits for n mails.
func (s *mailServer) waitFor(n int) []received {
	s.t.Helper()
	deadline := time.After(eventually.Patience)
	for {
		s.mu.Lock()
		mails, signal := append([]received(nil), s.mails...), s.signal
		s.mu.Unlock()
		if len(mails) >= n {
			return mails
		}
		select {
		case <-signal:
		case <-deadline:
			s.t.Fatalf("%d mails, want %d", len(mails), n)
		}
	}
}

type session struct {
	server *mailServer
	conn   *smtp.Conn
	mail   received
}

// do does what the script says at a command.
func (s *session) do(at string) error {
	a := s.server.at(at, s.mail.to)
	if a.drop {
		_ = s.conn.Conn().Close()
	}
	if a.err != nil {
		return a.err
	}
	return nil
}

func (s *session) Reset()        { s.mail = received{} }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, opts *smtp.MailOptions) error {
	s.mail = received{from: from, ret: opts.Return}
	return s.do("MAIL")
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to = to
	return s.do("RCPT")
}

func (s *session) Data(r io.Reader) error {
	if err := s.do("TEXT"); err != nil {
		return err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err // it broke off: nothing is kept
	}
	s.mail.data = data
	a := s.server.at("END", s.mail.to)
	if a.err != nil {
		return a.err
	}
	s.server.keep(s.mail)
	if a.drop {
		_ = s.conn.Conn().Close()
	}
	return nil
}

// nolog drops what the server says about clients that leave.
type nolog struct{}

func (nolog) Printf(string, ...any) {}
func (nolog) Println(...any)        {}
