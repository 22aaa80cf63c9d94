package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/event"
)

// A filed report is one that an official filed for somebody.
type filed struct {
	report uuid.UUID
	userID string
	caller string // sealed
}

func (s *testServer) filed() filed {
	f := filed{report: uuid.New(), userID: event.NewCaller()}
	f.caller = s.ring.Seal(f.report, f.userID)
	return f
}

func (f filed) body(address string) string {
	return fmt.Sprintf(`{"report_id":%q,"caller":%q,"address":%q,"language":"id","zone":"Asia/Jakarta"}`, f.report, f.caller, address)
}

// set enters an address, and returns its state.
func (s *testServer) set(f filed, address string, status int) string {
	s.t.Helper()
	var answer struct{ State string }
	s.do(call{method: "PUT", path: "/callers", token: s.token("olga", auth.Official), body: f.body(address)}, status, &answer)
	return answer.State
}

// proof returns the token in the mail that waits for the address of f.
func (s *testServer) proof(f filed) string {
	s.t.Helper()
	var contact uuid.UUID
	var body struct{ Code string }
	err := s.pool.QueryRow(s.t.Context(), `
		select c.id, convert_from(d.body, 'UTF8')::jsonb from callers k join contacts c on c.id = k.contact_id join deliveries d on d.target = c.id::text
		where k.report_id = $1 and d.kind = 'proof' and d.state = 'waiting'`, f.report).Scan(&contact, &body)
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := s.mailKeys.Open(contact, body.Code)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func (s *testServer) state(f filed, status int) string {
	s.t.Helper()
	var answer struct{ State string }
	s.do(call{method: "POST", path: "/callers/state", token: s.token("otto", auth.Official), body: fmt.Sprintf(`{"report_id":%q}`, f.report)}, status, &answer)
	return answer.State
}

// An official enters an address. It gets one link, whose page changes nothing, and whose
// button has one effect: mails about the report.
func TestProofOfCallersAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := s.filed()
	s.state(f, 404)
	if got := s.set(f, "budi@example.org", 200); got != "unverified" {
		t.Errorf("state %q, want unverified", got)
	}
	if n := s.number(`select count(*) from contacts where address like '%budi%'`); n != 0 {
		t.Error("the address is in clear text")
	}
	const rows = `select count(*) filter (where state = 'active') + 10 * count(*) + 100 * (select count(*) from mail_consents) + 1000 * (select count(*) from callers where proof_hash is not null) from contacts`
	before := s.number(rows)
	token := s.proof(f)
	page := s.raw("GET", "/p/"+token, "", 200)
	if !strings.Contains(page, `<form method="post">`) || !strings.Contains(page, `lang="id"`) {
		t.Errorf("no button in Indonesian: %s", page)
	}
	for _, behind := range []string{".", ")", "/", "?utm_source=mail"} {
		if other := s.raw("GET", "/p/"+token+behind, "", 200); other != page {
			t.Errorf("the link with %s behind it leads to another page", behind)
		}
	}
	s.raw("HEAD", "/p/"+token, "", 200)
	if got := s.number(rows); got != before {
		t.Fatalf("a GET changed something: %d, want %d", got, before)
	}
	proven := s.raw("POST", "/p/"+token, url.Values{"prove": {"yes"}}.Encode(), 200)
	if strings.Contains(proven, "<form") {
		t.Errorf("a button after the proof: %s", proven)
	}
	if got := s.state(f, 200); got != "active" {
		t.Errorf("state %q after the proof", got)
	}
	if n := s.number(`select count(*) from mail_consents m join contacts c using (stream_id) where m.report_id = $1 and c.kinds @> '{report.status.updated}'`, f.report); n != 1 {
		t.Error("the caller gets no mails about the report")
	}
	after := s.number(rows)
	for _, method := range []string{"GET", "POST"} { // as by a second click
		if again := s.raw(method, "/p/"+token, "", 200); again != proven {
			t.Errorf("%s of a used link: %s, want %s", method, again, proven)
		}
		s.raw(method, "/p/"+email.NewToken(), "", 404)
		s.raw(method, "/p/x", "", 404)
	}
	if got := s.number(rows); got != after {
		t.Errorf("a second click changed something: %d, want %d", got, after)
	}
	s.set(f, "budi@example.org", 200) // asked again by a page that got no answer
	s.set(f, "other@example.org", 409)
	if n := s.number(`select count(*) from deliveries`); n != 1 {
		t.Errorf("%d mails, want 1", n)
	}
}

// An address that is not proven is replaced, and its link is void. The same one again has
// no further mail within an hour. Other reports wait for their turn, and nobody gets more
// than five mails a day.
func TestCallersAreNotFlooded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := s.filed()
	const waiting = `select count(*) from deliveries d where kind = 'proof' and state = 'waiting' and exists (select from contacts c where c.id::text = d.target)`
	s.set(f, "tpyo@example.org", 200)
	old := s.proof(f)
	s.set(f, "budi@example.org", 200)
	s.raw("POST", "/p/"+old, "", 404)
	first := s.proof(f)
	for range 3 {
		s.set(f, "Budi@example.org", 200)
	}
	if n := s.number(waiting); n != 1 {
		t.Errorf("%d mails wait, want 1", n)
	}
	s.exec(`update callers set mailed_at = mailed_at - interval '61 minutes'`)
	s.exec(`update caller_mails set due_at = due_at - interval '61 minutes'`)
	s.set(f, "budi@example.org", 200)
	if s.proof(f) == first {
		t.Error("no new link after an hour")
	}
	s.raw("GET", "/p/"+first, "", 404)

	// The second report of the call: its mail comes an hour after the first, and the sixth a day after.
	for i := range 4 {
		g := s.filed()
		s.set(g, "budi@example.org", 200)
		hours := []string{"1", "2", "3", "23"}[i] // the mail of an hour ago is the first of the five
		if n := s.number(`select count(*) from deliveries d join callers k on k.contact_id::text = d.target where k.report_id = $1
			and abs(extract(epoch from d.due_at - now()) / 3600 - $2::float8) < 0.1 and d.due_at = k.mailed_at`, g.report, hours); n != 1 {
			t.Errorf("mail %d is not due in %s hours", i, hours)
		}
	}
	for range email.MaxProofs - 3 { // three were entered above
		s.set(f, uuid.NewString()+"@example.org", 200)
	}
	s.set(f, uuid.NewString()+"@example.org", 429)
}

// Nobody but officials enters addresses, for nobody but callers of that report, and an
// erased caller stays erased.
func TestCallersOfOthers(t *testing.T) {
	t.Parallel()
	var erased string
	s := newServer(t, func(p *parts) { p.Callers.Erased = func(id string) bool { return id == erased } })
	f, ann := s.filed(), s.filed()
	ann.caller = s.ring.Seal(ann.report, "ann") // as in a message about her report
	s.set(ann, "budi@example.org", 400)
	s.set(filed{report: uuid.New(), caller: f.caller}, "budi@example.org", 400)
	s.set(filed{report: f.report, caller: "v2.k1.AAAA"}, "budi@example.org", 400)
	s.set(f, "no address", 400)
	s.set(f, "no-reply@city.example.org", 400)
	for _, role := range []auth.Role{auth.Resident, auth.Operator, auth.Auditor} {
		s.do(call{method: "PUT", path: "/callers", token: s.token("eve", role), body: f.body("budi@example.org")}, 403, nil)
		s.do(call{method: "POST", path: "/callers/state", token: s.token("eve", role), body: fmt.Sprintf(`{"report_id":%q}`, f.report)}, 403, nil)
	}
	erased = f.userID
	s.set(f, "budi@example.org", 404)
	if n := s.number(`select count(*) from contacts`); n != 0 {
		t.Errorf("%d contacts, want none", n)
	}
}

// An operator finds whom to erase by the address alone.
func TestCallersAreFoundByAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f, g, other := s.filed(), s.filed(), s.filed()
	s.set(f, "budi@example.org", 200)
	s.set(g, "budi@example.org", 200)
	s.set(other, "siti@example.org", 200)
	s.do(call{method: "PUT", path: "/me/contact", token: s.token("ann", auth.Resident), body: strings.Replace(annsContact, "ann@", "budi@", 1)}, 200, nil)
	var found struct {
		UserIDs []string `json:"user_ids"`
	}
	search := call{method: "POST", path: "/admin/callers/search", token: s.token("pavel", auth.Operator), body: `{"address":"BUDI@example.org"}`}
	s.do(search, 200, &found)
	if got, want := strings.Join(found.UserIDs, " "), f.userID+" "+g.userID; got != want {
		t.Errorf("found %q, want %q: a resident with an account asks with their id", got, want)
	}
	search.token = s.token("olga", auth.Official)
	s.do(search, 403, nil)
}
