package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// Limits of guests in the city of the tests.
const (
	guestReports     = 3  // of each in a day
	guestsPerAddress = 12 // in an hour
)

// A browser keeps cookies, and is at an address.
type browser struct {
	s       *testServer
	address string
	cookies map[string]string
}

func (s *testServer) browser(address string) *browser {
	return &browser{s: s, address: address, cookies: make(map[string]string)}
}

func (b *browser) do(c call) answer {
	b.s.t.Helper()
	c.headers = map[string]string{"X-Forwarded-For": b.address}
	var pairs []string
	for name, value := range b.cookies {
		pairs = append(pairs, name+"="+value)
	}
	if len(pairs) > 0 {
		c.headers["Cookie"] = strings.Join(pairs, "; ")
	}
	a := b.s.do(c)
	for _, set := range a.Cookies() {
		if b.cookies[set.Name] = set.Value; set.MaxAge < 0 {
			delete(b.cookies, set.Name)
		}
	}
	return a
}

// want sends a request and returns its answer, which must have that status, and as a problem
// be of that kind.
func (b *browser) want(method, path, body string, status int, kind string) answer {
	b.s.t.Helper()
	a := b.do(call{method: method, path: path, body: body})
	if a.StatusCode != status || kind != "" && !strings.Contains(string(a.body), "problems#"+kind+`"`) {
		b.s.t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, a.StatusCode, a.body, status, kind)
	}
	return a
}

// guest returns a browser with the session of a new guest.
func (s *testServer) guest(address string) *browser {
	s.t.Helper()
	b := s.browser(address)
	b.want("POST", "/guests", "", http.StatusCreated, "")
	return b
}

// signIn does what notification-service does: the guest's token moves to a cookie of its
// own, and the account's token is in the session's.
func (b *browser) signIn(name string) *browser {
	b.s.t.Helper()
	if guest := b.cookies[auth.CookieName]; guest != "" {
		b.cookies["cityconnect_guest"] = guest
	}
	b.cookies[auth.CookieName] = token(b.s.t, name, auth.Resident)
	return b
}

const anonymousReport = `{"title":"Dark lamp","description":"","category_id":2,"privacy_level":"anonymous"}`

func (b *browser) file() uuid.UUID {
	b.s.t.Helper()
	a := b.want("POST", "/reports", anonymousReport, http.StatusCreated, "")
	return decode[reportapi.Report](b.s.t, a).ID
}

func (b *browser) mine() int {
	b.s.t.Helper()
	return len(decode[reportapi.ReportPage](b.s.t, b.want("GET", "/reports/mine", "", http.StatusOK, "")).Reports)
}

// A guest files anonymous reports, reads them as their own and withdraws them; nobody is
// named, and neither votes nor comments are taken. A city without guests has none.
func TestGuestFilesAndReads(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	other := s.file(token(t, "ann", auth.Resident), "anonymous")
	g := s.guest("192.0.2.1")
	id := g.file()
	g.want("POST", "/reports", strings.Replace(anonymousReport, "anonymous", "public", 1), http.StatusBadRequest, "invalid-input")
	if n := g.mine(); n != 1 {
		t.Errorf("the guest has %d reports, want 1", n)
	}
	g.want("POST", "/reports/"+other.ID.String()+"/vote", `{"vote_type":"upvote"}`, http.StatusForbidden, "not-for-guests")
	g.want("POST", "/reports/"+other.ID.String()+"/comments", `{"text":"Still dark","anonymous":true}`, http.StatusForbidden, "not-for-guests")
	g.want("POST", "/guests", "", http.StatusConflict, "signed-in")
	g.want("GET", "/reports/queue", "", http.StatusForbidden, "forbidden")
	g.want("GET", "/guests/adoption", "", http.StatusForbidden, "not-for-guests")
	g.want("DELETE", "/reports/"+id.String(), "", http.StatusOK, "")
	s.browser("192.0.2.1").want("POST", "/guests/code", "", http.StatusUnauthorized, "unauthenticated")

	none := newServer(t, func(p *parts) { p.Guests.On = false })
	none.browser("192.0.2.1").want("POST", "/guests", "", http.StatusNotFound, "no-guests")
	none.browser("192.0.2.1").want("GET", "/guests", "", http.StatusNotFound, "no-guests")
}

// A site that has a browser send somebody's code uses up no code.
func TestCrossSiteLeavesTheCode(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	code := decode[reportapi.GuestCode](t, s.guest("192.0.2.1").want("POST", "/guests/code", "", http.StatusCreated, "")).Code
	body := `{"code":"` + code + `"}`
	foreign := call{method: "POST", path: "/guests/session", body: body, headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"}}
	s.wantStatus(http.StatusForbidden, foreign)
	s.browser("192.0.2.2").want("POST", "/guests/session", body, http.StatusCreated, "")
}

// Of the guests at one address so many file within an hour: those who only look around are
// not counted, and some hundred are let in. Other addresses are not refused, and a guest is
// beyond the day's reports at whatever address.
func TestFloodOfGuests(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var guests, reports, refused int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				b := s.browser("192.0.2.7")
				b.want("POST", "/guests", "", http.StatusCreated, "")
				filed := 0
				for range guestReports + 2 {
					if b.do(call{method: "POST", path: "/reports", body: anonymousReport}).StatusCode == http.StatusCreated {
						filed++
					}
				}
				mu.Lock()
				if reports += filed; filed > 0 {
					guests++
				} else {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if guests != guestsPerAddress || refused != 40-guestsPerAddress || reports != guestsPerAddress*guestReports {
		t.Errorf("%d guests, %d refused, %d reports; want %d, %d and %d", guests, refused, reports, guestsPerAddress, 40-guestsPerAddress, guestsPerAddress*guestReports)
	}
	if a := s.guest("192.0.2.7").want("POST", "/reports", anonymousReport, http.StatusTooManyRequests, "too-many-guests"); a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	sessions := 41
	for ; s.browser("192.0.2.7").do(call{method: "POST", path: "/guests"}).StatusCode == http.StatusCreated; sessions++ {
	}
	if sessions != 10*guestsPerAddress {
		t.Errorf("%d guests of an address, want %d", sessions, 10*guestsPerAddress)
	}
	g := s.guest("192.0.2.8") // another address
	for range guestReports {
		g.file()
	}
	g.address = "192.0.2.9"
	if a := g.want("POST", "/reports", anonymousReport, http.StatusTooManyRequests, "guest-quota"); a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.file(token(t, "ann", auth.Resident), "anonymous") // an account is not limited by it
	const warning = "set GATEWAY_TRUSTED_PROXY"
	if strings.Contains(s.logs.String(), warning) {
		t.Error("public addresses are warned of")
	}
	for range 2 {
		s.guest("10.0.0.1")
	}
	if n := strings.Count(s.logs.String(), warning); n != 1 {
		t.Errorf("a proxy that nobody trusts is warned of %d times, want once", n)
	}
}

// Reports of one guest that come at the same time count as those that come one after
// the other, and a repeated request does not count.
func TestGuestQuotaHoldsAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	g := s.guest("192.0.2.1")
	cookie := auth.CookieName + "=" + g.cookies[auth.CookieName]
	statuses := make([]int, 12)
	var wg sync.WaitGroup
	for i := range statuses {
		wg.Go(func() {
			statuses[i] = s.do(call{method: "POST", path: "/reports", body: anonymousReport,
				headers: map[string]string{"Cookie": cookie, "Idempotency-Key": fmt.Sprint(i)}}).StatusCode
		})
	}
	wg.Wait()
	filed := 0
	for i, status := range statuses {
		if status != http.StatusCreated {
			continue
		}
		filed++
		again := s.do(call{method: "POST", path: "/reports", body: anonymousReport, headers: map[string]string{"Cookie": cookie, "Idempotency-Key": fmt.Sprint(i)}})
		if again.StatusCode != http.StatusCreated {
			t.Errorf("repeated: %d %s, want the first answer", again.StatusCode, again.body)
		}
	}
	if n := g.mine(); filed != guestReports || n != guestReports {
		t.Errorf("%d accepted, %d stored, want %d", filed, n, guestReports)
	}
}

// A code opens the guest's session on another device, once, within ten minutes; each
// refusal says why. Guesses are limited by address.
func TestGuestCode(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	g := s.guest("192.0.2.1")
	g.file()
	code := func() string {
		return decode[reportapi.GuestCode](t, g.want("POST", "/guests/code", "", http.StatusCreated, "")).Code
	}
	redeem := func(b *browser, code string, status int, kind string) {
		t.Helper()
		b.want("POST", "/guests/session", `{"code":"`+code+`"}`, status, kind)
	}
	first, second := code(), code()
	other := s.browser("192.0.2.2")
	redeem(other, first, http.StatusGone, "expired-code") // replaced
	redeem(other, `\u00a0`+strings.ToLower(strings.ReplaceAll(second, "-", `\n`))+`.\u200b`, http.StatusCreated, "")
	if n := other.mine(); n != 1 {
		t.Errorf("the other device has %d reports, want 1", n)
	}
	redeem(other, second, http.StatusConflict, "signed-in")
	redeem(s.browser("192.0.2.3"), second, http.StatusConflict, "used-code")
	redeem(s.browser("192.0.2.3"), "00000-00000", http.StatusNotFound, "unknown-code")
	redeem(s.browser("192.0.2.3"), "too short", http.StatusBadRequest, "invalid-input")
	late := code()
	if _, err := s.pool.Exec(t.Context(), `update guest_codes set expires_at = now() where used_at is null`); err != nil {
		t.Fatal(err)
	}
	redeem(s.browser("192.0.2.3"), late, http.StatusGone, "expired-code")
	account := s.browser("192.0.2.4").signIn("ann")
	account.want("POST", "/guests/code", "", http.StatusForbidden, "not-for-guests")
	for range 40 {
		s.browser("192.0.2.5").do(call{method: "POST", path: "/guests/session", body: `{"code":"00000-00000"}`})
	}
	redeem(s.browser("192.0.2.5"), code(), http.StatusTooManyRequests, "too-many-requests")

	// Two devices that redeem it at the same time: one of them has it.
	now, statuses := code(), make([]int, 4)
	var wg sync.WaitGroup
	for i := range statuses {
		wg.Go(func() {
			statuses[i] = s.browser(fmt.Sprintf("192.0.2.%d", 20+i)).do(call{method: "POST", path: "/guests/session", body: `{"code":"` + now + `"}`}).StatusCode
		})
	}
	wg.Wait()
	opened := 0
	for _, status := range statuses {
		if status == http.StatusCreated {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("a code opened %d sessions: %v", opened, statuses)
	}
}

// An operator closes reporting without an account, and opens it again, on every replica
// within two seconds; both are in the audit. Guests keep what they have.
func TestGuestSwitch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	g := s.guest("192.0.2.1")
	g.file()
	olu, replica := token(t, "olu", auth.Operator), newReplica(t, s.database, rules)
	const path = "/admin/reports/guests"
	set := func(body string) {
		t.Helper()
		ok[reportapi.GuestSwitch](s, call{method: "PUT", path: path, token: olu, body: body}, http.StatusOK)
	}
	set(`{"open":false,"reason":"flood of 192.0.2.0/24"}`)
	s.browser("192.0.2.2").want("POST", "/guests", "", http.StatusForbidden, "guests-closed")
	g.want("POST", "/reports", anonymousReport, http.StatusForbidden, "guests-closed")
	if n := g.mine(); n != 1 {
		t.Errorf("the guest has %d reports, want 1", n)
	}
	replica.browser("192.0.2.2").want("POST", "/guests", "", http.StatusForbidden, "guests-closed")
	if now, _ := ok[reportapi.GuestSwitch](s, call{method: "GET", path: path, token: token(t, "aud", auth.Auditor)}, http.StatusOK); now.Open || now.Reason == "" || now.ChangedAt.IsZero() {
		t.Errorf("the switch is %+v", now)
	}
	set(`{"open":true,"reason":"over"}`)
	set(`{"open":true,"reason":"changes nothing"}`)
	g.file()
	audit, _ := ok[reportapi.SettingsAudit](s, call{method: "GET", path: "/admin/reports/settings/audit", token: olu}, http.StatusOK)
	if len(audit.Acts) != 2 || audit.Acts[1].Actor != "olu" || audit.Acts[1].Setting != "guests" || audit.Acts[1].Detail["open"] != false {
		t.Errorf("the audit has %+v, want closing and opening", audit.Acts)
	}
	for _, role := range []auth.Role{auth.Resident, auth.Official, auth.Auditor} {
		if a := s.do(call{method: "PUT", path: path, token: token(t, "x", role), body: `{"open":false,"reason":"x"}`}); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s closes it: %d", role, a.StatusCode)
		}
	}
}

// An account takes over a guest's reports, once: a repetition answers the same, another
// account is refused, and so is the guest's token from then on.
func TestAdoptGuest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	g := s.guest("192.0.2.1")
	g.file()
	g.file()
	old, thief := *g, *g
	old.cookies = map[string]string{auth.CookieName: g.cookies[auth.CookieName]}
	thief.cookies = map[string]string{auth.CookieName: g.cookies[auth.CookieName]}
	code := decode[reportapi.GuestCode](t, g.want("POST", "/guests/code", "", http.StatusCreated, "")).Code

	s.browser("192.0.2.2").signIn("ann").want("POST", "/guests/adoption", "", http.StatusNotFound, "no-guest")
	ann := g.signIn("ann")
	if n := decode[reportapi.Adoption](t, ann.want("GET", "/guests/adoption", "", http.StatusOK, "")).Reports; n != 2 {
		t.Errorf("%d reports to take over, want 2", n)
	}
	kept := ann.cookies["cityconnect_guest"]
	for range 2 { // the second as after a lost answer
		ann.cookies["cityconnect_guest"] = kept
		if n := decode[reportapi.Adoption](t, ann.want("POST", "/guests/adoption", "", http.StatusOK, "")).Reports; n != 2 {
			t.Errorf("%d reports taken over, want 2", n)
		}
		if ann.cookies["cityconnect_guest"] != "" {
			t.Error("the guest's cookie is kept")
		}
	}
	if n := ann.mine(); n != 2 {
		t.Errorf("the account has %d reports, want 2", n)
	}
	var messages int
	if err := s.pool.QueryRow(t.Context(), `select count(*) from outbox_messages where routing_key = 'guest.adopted'`).Scan(&messages); err != nil || messages != 1 {
		t.Errorf("%d messages of it, error %v; want 1", messages, err)
	}
	thief.signIn("ben").want("POST", "/guests/adoption", "", http.StatusConflict, "adopted-elsewhere")
	s.browser("192.0.2.3").want("POST", "/guests/session", `{"code":"`+code+`"}`, http.StatusNotFound, "unknown-code")
	old.want("POST", "/reports", anonymousReport, http.StatusUnauthorized, "guest-adopted")
	if len(old.cookies) > 0 {
		t.Errorf("the old cookie is kept: %v", old.cookies)
	}
	s.guest("192.0.2.4").signIn("ben").want("DELETE", "/guests/adoption", "", http.StatusNoContent, "")
}

func decode[T any](t testing.TB, a answer) (body T) {
	t.Helper()
	if err := json.Unmarshal(a.body, &body); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return body
}
