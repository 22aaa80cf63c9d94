package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/platform/auth"
)

// code returns the code that waits to be sent.
func (s *testServer) code() string {
	s.t.Helper()
	var target uuid.UUID
	var body []byte
	err := s.pool.QueryRow(s.t.Context(), `
		select target::uuid, body from deliveries where channel = 'email' and kind = 'code' and state = 'waiting'`).Scan(&target, &body)
	if err != nil {
		s.t.Fatal(err)
	}
	var sealed email.SealedCode
	if err := json.Unmarshal(body, &sealed); err != nil {
		s.t.Fatal(err)
	}
	code, err := s.mailKeys.Open(target, sealed.Code)
	if err != nil {
		s.t.Fatal(err)
	}
	return code
}

func (s *testServer) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

func (s *testServer) number(sql string, args ...any) (n int) {
	s.t.Helper()
	if err := s.pool.QueryRow(s.t.Context(), sql, args...).Scan(&n); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

const annsContact = `{"address":"Ann@example.org","language":"id","zone":"Asia/Jakarta"}`

// An address is proven by the code that was sent to it, and nothing is sent to it
// before. Another address has to be proven again.
func TestContact(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Resident)
	s.do(call{method: "GET", path: "/me/contact", token: ann}, 204, nil)
	s.do(call{method: "POST", path: "/me/contact/code", token: ann}, 404, nil)
	s.do(call{method: "PUT", path: "/me/preferences", token: ann, body: `{"email":[]}`}, 404, nil)
	s.do(call{method: "PUT", path: "/me/digest", token: ann, body: `{"frequency":"daily"}`}, 404, nil)
	for _, wrong := range []string{
		`{"address":"ann","language":"id","zone":"Asia/Jakarta"}`, `{"address":"ann@example.org","language":"fr","zone":"Asia/Jakarta"}`,
		`{"address":"ann@example.org","language":"id","zone":"Local"}`, `{"address":"ann@example.org","language":"id","zone":"../../etc/passwd"}`,
		`{"address":"No-Reply@city.example.org","language":"id","zone":"Asia/Jakarta"}`,
	} {
		s.do(call{method: "PUT", path: "/me/contact", token: ann, body: wrong}, 400, nil)
	}
	var contact struct{ Address, State string }
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: annsContact}, 200, &contact)
	if contact.Address != "Ann@example.org" || contact.State != "unverified" {
		t.Errorf("contact %+v", contact)
	}
	if n := s.number(`select count(*) from contacts t where t::text ilike '%ann@%'`); n != 0 {
		t.Error("the address is readable in the database")
	}
	s.do(call{method: "POST", path: "/me/contact/code", token: ann}, 202, nil)
	code := s.code()
	for range email.CodeTries - 1 {
		s.do(call{method: "POST", path: "/me/contact/verify", token: ann, body: `{"code":"` + other(code) + `"}`}, 400, nil)
	}
	s.do(call{method: "POST", path: "/me/contact/verify", token: s.token("bob", auth.Resident), body: `{"code":"` + code + `"}`}, 404, nil)
	s.do(call{method: "POST", path: "/me/contact/verify", token: ann, body: `{"code":"\u00a0` + code[:3] + " " + code[3:] + `.\n"}`}, 200, &contact)
	if contact.State != "active" {
		t.Errorf("state %q after the code, want active", contact.State)
	}
	s.do(call{method: "POST", path: "/me/contact/code", token: ann}, 409, nil)
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: strings.Replace(annsContact, "Ann@", "ANN@", 1)}, 200, &contact)
	if contact.State != "active" {
		t.Errorf("state %q after the same address in capitals, want active", contact.State)
	}
	s.do(call{method: "PUT", path: "/me/preferences", token: ann, body: `{"email":["report.status.updated"],"quiet_hours":{"from":"22:00","to":"06:00"}}`}, 200, nil)
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: strings.Replace(annsContact, "Ann@", "ann.b@", 1)}, 200, &contact)
	if contact.State != "unverified" {
		t.Errorf("state %q after another address, want unverified", contact.State)
	}
	var preferences struct {
		Email []string
		Quiet struct{ From, To string } `json:"quiet_hours"`
	}
	s.do(call{method: "GET", path: "/me/preferences", token: ann}, 200, &preferences)
	if len(preferences.Email) != 1 || preferences.Quiet.From != "22:00" || preferences.Quiet.To != "06:00" {
		t.Errorf("preferences %+v after another address, want those of before", preferences)
	}
	s.do(call{method: "DELETE", path: "/me/contact", token: ann}, 204, nil)
	s.do(call{method: "GET", path: "/me/contact", token: ann}, 204, nil)
	s.do(call{method: "GET", path: "/me/preferences", token: ann}, 200, &preferences)
}

// The first code that proves an address switches mails about new statuses on. What a
// reader has chosen stays, whatever is proven afterwards.
func TestProvenAddressGetsMails(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, bob := s.token("ann", auth.Resident), s.token("bob", auth.Resident)
	prove := func(token, address string) []string {
		t.Helper()
		var contact struct{ Email []string }
		s.do(call{method: "PUT", path: "/me/contact", token: token, body: strings.Replace(annsContact, "Ann@", address, 1)}, 200, nil)
		s.do(call{method: "POST", path: "/me/contact/code", token: token}, 202, nil)
		code := s.code()
		s.do(call{method: "POST", path: "/me/contact/verify", token: token, body: `{"code":"` + code + `"}`}, 200, &contact)
		s.exec(`update contact_codes set sent_at = sent_at - interval '2 minutes'`)
		s.exec(`update deliveries set state = 'cancelled', done_at = now()`)
		return contact.Email
	}
	if got := prove(ann, "ann@"); !slices.Equal(got, email.DefaultKinds) {
		t.Errorf("the first proven address gets %q, want %q", got, email.DefaultKinds)
	}
	s.do(call{method: "PUT", path: "/me/preferences", token: ann, body: `{"email":[]}`}, 200, nil)
	if got := prove(ann, "ann.b@"); len(got) != 0 {
		t.Errorf("after mails were switched off another address gets %q, want nothing", got)
	}
	s.do(call{method: "PUT", path: "/me/contact", token: bob, body: strings.Replace(annsContact, "Ann@", "bob@", 1)}, 200, nil)
	s.do(call{method: "PUT", path: "/me/preferences", token: bob, body: `{"email":["report.vote.received"]}`}, 200, nil)
	if got := prove(bob, "bob@"); !slices.Equal(got, []string{"report.vote.received"}) {
		t.Errorf("who chose before the code gets %q, want what was chosen", got)
	}
}

// other returns another code.
func other(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}

// A code has five tries and ten minutes; a reader has one a minute, and five a
// day. Codes that others had sent to the same address end the reader's own, and the
// answer does not say so.
func TestCodesAreLimited(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, bob := s.token("ann", auth.Resident), s.token("bob", auth.Resident)
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: annsContact}, 200, nil)
	s.do(call{method: "PUT", path: "/me/contact", token: bob, body: annsContact}, 200, nil)
	for i := range email.MaxCodes {
		s.do(call{method: "POST", path: "/me/contact/code", token: ann}, 202, nil)
		if header := s.do(call{method: "POST", path: "/me/contact/code", token: ann}, 429, nil); header.Get("Retry-After") != "60" {
			t.Errorf("Retry-After %q, want 60", header.Get("Retry-After"))
		}
		code := s.code() // the one before is cancelled
		if i == 0 {
			for range email.CodeTries {
				s.do(call{method: "POST", path: "/me/contact/verify", token: ann, body: `{"code":"` + other(code) + `"}`}, 400, nil)
			}
			s.do(call{method: "POST", path: "/me/contact/verify", token: ann, body: `{"code":"` + code + `"}`}, 400, nil)
		}
		s.exec(`update contact_codes set sent_at = sent_at - interval '2 minutes'`)
	}
	s.do(call{method: "POST", path: "/me/contact/code", token: ann}, 429, nil)
	s.do(call{method: "POST", path: "/me/contact/code", token: bob}, 202, nil)
	if n := s.number(`select count(*) from deliveries d join contacts c on c.id::text = d.target join streams s on s.id = c.stream_id where s.name = 'user:bob'`); n != 0 {
		t.Error("a sixth code was sent to the address")
	}
	code := s.code()
	s.exec(`update contacts set code_until = now() where code_until is not null`)
	s.do(call{method: "POST", path: "/me/contact/verify", token: ann, body: `{"code":"` + code + `"}`}, 400, nil)
	s.exec(`update contact_codes set sent_at = sent_at - interval '1 day'`)
	s.do(call{method: "POST", path: "/me/contact/code", token: ann}, 202, nil)
}

// A digest is due at the reader's local time, and moves with their zone.
func TestDigestSettings(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Resident)
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: annsContact}, 200, nil)
	var digest struct{ Frequency, Weekday, At string }
	s.do(call{method: "GET", path: "/me/digest", token: ann}, 200, &digest)
	if digest.Frequency != "off" {
		t.Errorf("digest %+v, want off until asked for", digest)
	}
	s.do(call{method: "PUT", path: "/me/digest", token: ann, body: `{"frequency":"weekly","weekday":"friday","at":"18:30"}`}, 200, &digest)
	s.do(call{method: "GET", path: "/me/digest", token: ann}, 200, &digest)
	if digest.Frequency != "weekly" || digest.Weekday != "friday" || digest.At != "18:30" {
		t.Errorf("digest %+v", digest)
	}
	const local = `select count(*) from digests where next_at > now() and next_at <= now() + interval '8 days'
		and to_char(next_at at time zone $1, 'DHH24:MI') = '618:30'`
	if s.number(local, "Asia/Jakarta") != 1 {
		t.Error("the digest is not due on Friday at half past six in Jakarta")
	}
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: strings.Replace(annsContact, "Jakarta", "Jayapura", 1)}, 200, nil)
	if s.number(local, "Asia/Jayapura") != 1 {
		t.Error("the digest has not moved to Jayapura")
	}
	for _, wrong := range []string{`{"frequency":"hourly"}`, `{"frequency":"daily","at":"24:00"}`, `{"frequency":"weekly","weekday":"someday"}`} {
		s.do(call{method: "PUT", path: "/me/digest", token: ann, body: wrong}, 400, nil)
	}
	s.do(call{method: "PUT", path: "/me/digest", token: ann, body: `{"frequency":"off"}`}, 200, nil)
	if s.number(`select count(*) from digests`) != 0 {
		t.Error("the digest is still due")
	}
}

// Programs that scan mails open every link, which changes nothing. A mail provider's
// one click ends the mails of its kind, without a cookie, even after one has expired.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Resident)
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: annsContact}, 200, nil)
	s.do(call{method: "PUT", path: "/me/preferences", token: ann, body: `{"email":["report.status.updated","report.vote.received"]}`}, 200, nil)
	s.do(call{method: "PUT", path: "/me/digest", token: ann, body: `{"frequency":"daily"}`}, 200, nil)
	s.do(call{method: "PUT", path: "/me/mail-consents", token: ann, body: `{"report_id":"` + uuid.NewString() + `","mail":true}`}, 204, nil)
	const wanted = `select cardinality(kinds) + (select count(*) from digests) + (select count(*) from mail_consents) from contacts`
	var contact uuid.UUID
	if err := s.pool.QueryRow(t.Context(), `select id from contacts`).Scan(&contact); err != nil {
		t.Fatal(err)
	}
	left := s.number(wanted)
	for _, kind := range []string{"report.status.updated", "report.vote.received", email.Digest, email.Anonymous} {
		token := email.NewToken()
		if _, err := s.store.Mails.UnsubscribeToken(t.Context(), contact, kind, email.TokenHash(token), s.mailKeys.SealToken(contact, token)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			page := s.raw("GET", "/u/"+token, "", 200)
			for _, behind := range []string{".", ")", "%3E", "/", "?utm_source=mail"} { // what programs take for a part of a link
				if other := s.raw("GET", "/u/"+token+behind, "", 200); other != page {
					t.Errorf("the link with %s behind it leads to another page", behind)
				}
			}
			if !strings.Contains(page, `<form method="post">`) {
				t.Errorf("%s: no button in %s", kind, page)
			}
			s.raw("HEAD", "/u/"+token, "", 200)
		}
		if got := s.number(wanted); got != left {
			t.Fatalf("%s: %d are left of %d after a GET", kind, got, left)
		}
		for range 2 { // RFC 8058 section 3.2
			page := s.raw("POST", "/u/"+token, url.Values{"List-Unsubscribe": {"One-Click"}}.Encode(), 200)
			if strings.Contains(page, "<form") {
				t.Errorf("%s: a button after the end: %s", kind, page)
			}
		}
		left--
		if got := s.number(wanted); got != left {
			t.Errorf("%s: %d are left, want %d", kind, got, left)
		}
	}
	s.raw("GET", "/u/"+email.NewToken(), "", 404)
	s.raw("POST", "/u/x", "", 404)
}

// raw makes a request with an expired cookie, as from another site, follows no
// redirect, and returns what is answered.
func (s *testServer) raw(method, path, form string, status int) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(form))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Cookie", auth.CookieName+"=expired")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	req.Header.Set("Origin", "https://mail.example.org")
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		s.t.Fatalf("%s %s: status %d, %v, want %d: %s", method, path, res.StatusCode, err, status, body)
	}
	return string(body)
}

// Bounces are taken from whoever has the secret, and what is none is dropped.
func TestBouncesAreTaken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Resident)
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: annsContact}, 200, nil)
	s.do(call{method: "POST", path: "/me/contact/code", token: ann}, 202, nil)
	id := int64(s.number(`select id from deliveries`))
	bounce := strings.ReplaceAll(`To: bounce+`+s.mailKeys.DeliveryToken(id)+`@bounces.city.example.org
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/plain

No such user.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org

Final-Recipient: rfc822; ann@example.org
Action: failed
Status: 5.1.1
--b--
`, "\n", "\r\n")
	post := func(secret, body string, status int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/mail/bounces", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "message/rfc822")
		req.Header.Set("X-Mail-Secret", secret)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("status %d, want %d", res.StatusCode, status)
		}
	}
	post("", bounce, 401)
	post("wrong", bounce, 401)
	post(bounceSecret, "Subject: I am on holiday\r\n\r\nBye.\r\n", 204)
	if s.number(`select count(*) from mail_bounces`) != 0 {
		t.Fatal("somebody who is on holiday, or has no secret, has bounced")
	}
	post(bounceSecret, bounce, 204)
	post(bounceSecret, bounce, 204)
	if s.number(`select count(*) from mail_bounces where hard and code = '5.1.1'`) != 1 || s.number(`select count(*) from contacts where state = 'bounced'`) != 1 {
		t.Error("the address that does not exist may be written to")
	}
	if f := s.mailFigures(); len(f.Lanes) != 1 || f.Lanes[0].Lane != "others" || f.Lanes[0].Waiting != 0 || len(f.Bounces) != 0 {
		t.Errorf("one person is among the figures: %+v", f)
	}
}

// mailFigures are those that operators see.
type mailFigures struct {
	Lanes []struct {
		Lane    string
		Waiting int
		Since   *time.Time `json:"waiting_since"`
	}
	Bounces []struct {
		Lane, Code string
		Count      int
	}
}

func (s *testServer) mailFigures() (f mailFigures) {
	s.t.Helper()
	s.do(call{method: "GET", path: "/admin/email", token: s.token("pavel", auth.Operator)}, 200, &f)
	return f
}

// Operators see figures of many people at a large host, and of nobody else.
func TestMailFiguresAreOfMany(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.do(call{method: "GET", path: "/admin/email", token: s.token("ann", auth.Resident)}, 403, nil)
	// Many at a large host, of whom fewer than 20 have proven their address.
	s.exec(`insert into streams (name) select 'user:' || n from generate_series(1, 100) n`)
	s.exec(`
		insert into contacts (id, stream_id, address, address_mac, lane, language, zone, state)
		select gen_random_uuid(), id, 'sealed', '', 'gmail.com', 'en', 'UTC', case when row_number() over () < 20 then 'active' else 'unverified' end
		from streams where name like 'user:%' and name not in ('user:ann', 'user:pavel')`)
	if f := s.mailFigures(); len(f.Lanes) != 1 {
		t.Errorf("a host with 19 people is named: %+v", f)
	}
	s.exec(`update contacts set state = 'bounced' where lane = 'gmail.com'`)
	s.exec(`
		insert into deliveries (channel, lane, target, message_id, kind, body, created_at, due_at)
		select 'email', 'gmail.com', c.id, n, 'report.status.updated', '', now() - interval '3 hours', now() - interval '3 hours'
		from contacts c, generate_series(1, 3) n where c.lane = 'gmail.com'`)
	s.exec(`
		insert into mail_bounces (delivery_id, contact_id, lane, code, hard, at)
		select d.id, d.target::uuid, d.lane, '5.7.1', true, now() - interval '2 days' from deliveries d where d.lane = 'gmail.com'`)
	f, again := s.mailFigures(), s.mailFigures()
	people := s.number(`select count(*) from contacts where lane = 'gmail.com'`)
	if len(f.Lanes) != 2 || f.Lanes[0].Lane != "gmail.com" || f.Lanes[1].Waiting != 0 || f.Lanes[1].Since != nil ||
		f.Lanes[0].Waiting > people || f.Lanes[0].Waiting <= people-40 || f.Lanes[0].Waiting%20 != 0 ||
		f.Lanes[0].Since == nil || f.Lanes[0].Since.Minute() != 0 || time.Since(*f.Lanes[0].Since) > 4*time.Hour || time.Since(*f.Lanes[0].Since) < 3*time.Hour {
		t.Errorf("%d people wait at a large host: %+v", people, f)
	}
	if len(f.Bounces) != 1 || f.Bounces[0].Lane != "gmail.com" || f.Bounces[0].Code != "5.7.1" || f.Bounces[0].Count > people || f.Bounces[0].Count <= people-40 {
		t.Errorf("the mails of %d people bounced: %+v", people, f.Bounces)
	}
	if !reflect.DeepEqual(f.Bounces, again.Bounces) {
		t.Errorf("whoever asks twice gets %+v and %+v", f, again)
	}
}

// The caller's own address is readable in what is held about them, and nobody else's.
func TestOwnData(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Resident)
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: annsContact}, 200, nil)
	var own struct {
		UserID string `json:"user_id"`
		Data   map[string][]struct{ Address string }
	}
	s.do(call{method: "GET", path: "/me/data", token: ann}, 200, &own)
	if own.UserID != "ann" || len(own.Data["contact"]) != 1 || own.Data["contact"][0].Address != "Ann@example.org" {
		t.Errorf("ann's data is %+v", own)
	}
	s.do(call{method: "GET", path: "/me/data", token: s.token("bob", auth.Resident)}, 200, &own)
	if own.UserID != "bob" || len(own.Data["contact"]) != 0 {
		t.Errorf("bob's data is %+v", own)
	}
	s.do(call{method: "GET", path: "/me/data"}, 401, nil)
}
