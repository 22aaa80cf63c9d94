package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// keyOfGuests signs the tokens of guests.
const keyOfGuests = "guests of the end-to-end tests are signed"

// switchGuestsOn has people report without an account, who also comment, before the stack
// starts.
func (c *stack) switchGuestsOn() {
	for _, p := range []*process{c.report, c.notification, c.photo} {
		p.env["GUESTS"], p.env["GUEST_KEY"], p.env["GUEST_COMMENTS"] = "on", keyOfGuests, "on"
	}
}

// guestToken is what the city gives the guest with id.
func guestToken(id string) string {
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": auth.GuestIssuer, "aud": audience, "sub": id, "exp": time.Now().Add(auth.GuestLife).Unix(),
	}).SignedString([]byte(keyOfGuests))
	return must(signed, err)
}

// A visitor is a browser with its cookies.
type visitor struct {
	t    *testing.T
	http *http.Client
	base string
}

func (c *stack) visitor() *visitor {
	return &visitor{c.t, &http.Client{Jar: must(cookiejar.New(nil))}, c.gateway.URL}
}

// do sends a request, reads its answer into out unless that is nil, and returns the status.
func (v *visitor) do(method, path, body string, out any, header ...string) int {
	v.t.Helper()
	req := must(http.NewRequestWithContext(v.t.Context(), method, v.base+path, strings.NewReader(body)))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := v.http.Do(req)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	answer := must(io.ReadAll(res.Body))
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			v.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, answer)
		}
	}
	return res.StatusCode
}

// want is do for a request that must be answered with the status.
func (v *visitor) want(status int, method, path, body string, out any, header ...string) {
	v.t.Helper()
	if got := v.do(method, path, body, out, header...); got != status {
		v.t.Fatalf("%s %s: %d, want %d", method, path, got, status)
	}
}

func (v *visitor) file(title string) (report client.Report) {
	v.t.Helper()
	in := draft(title)
	in.PrivacyLevel = "anonymous"
	v.want(http.StatusCreated, "POST", "/reports", string(must(json.Marshal(in))), &report)
	return report
}

// updates returns how many notifications the visitor has of each move, by its note.
func (v *visitor) updates() map[string]int {
	v.t.Helper()
	var page struct {
		Notifications []struct{ Note string }
	}
	v.want(http.StatusOK, "GET", "/notifications?limit=100", "", &page)
	notes := make(map[string]int)
	for _, n := range page.Notifications {
		if n.Note != "" {
			notes[n.Note]++
		}
	}
	return notes
}

// Messages in the broker for a guest whom an account takes over reach the account,
// once: whether the adoption comes first, last, or with everything else after the service
// was down. And nobody else finds out who the guest was.
func TestAdoptionFindsWhatIsUnderway(t *testing.T) {
	t.Parallel()
	c := prepareStack(t)
	c.switchGuestsOn()
	c.start()
	wires := c.spyOnExchanges()
	accountID := "Id-" + uuid.NewString() + "-akun"
	v, olga := c.visitor(), c.signIn("Olga", "official")
	var guest struct {
		Sub   string
		Guest bool
	}
	v.want(http.StatusCreated, "POST", "/guests", "", &guest)
	report := v.file("A dark stair")
	note := 0
	said := func() string { note++; return fmt.Sprintf("news %d", note) }
	say(t, olga, report, said())
	eventually.True(t, "the guest is notified", func() bool { return v.updates()["news 1"] == 1 })

	statuses, adoptions := topology.Queue(event.StatusUpdatedKey), topology.Named("queue.adoptions")
	pause := func(queue string, paused bool) {
		if err := c.userOf("op", "operator").Do(t.Context(), http.MethodPatch, "/admin/workers/"+queue, map[string]bool{"paused": paused}, nil); err != nil {
			t.Fatalf("pause %s: %v", queue, err)
		}
		eventually.True(t, "the consumer stops or goes on", func() bool {
			q, err := c.channel().QueueDeclarePassive(queue, true, false, false, false, nil)
			return err == nil && (q.Consumers == 0) == paused
		})
	}
	account := token(jwt.MapClaims{"sub": accountID, "name": "Akun", "role": "resident"})
	var session struct{ Adoptable bool }
	v.want(http.StatusOK, "POST", "/session", "", &session, "Authorization", "Bearer "+account)
	if !session.Adoptable || !guest.Guest {
		t.Fatalf("after signing in: %+v, as a guest before: %+v", session, guest)
	}

	pause(statuses, true)
	say(t, olga, report, said()) // sealed for the guest, and not consumed
	pause(adoptions, true)
	var adopted struct{ Reports int }
	v.want(http.StatusOK, "POST", "/guests/adoption", "", &adopted)
	say(t, olga, report, said()) // for the account
	pause(adoptions, false)      // the adoption comes before what the guest is to get
	eventually.True(t, "the account has what the guest had", func() bool { return v.updates()["news 1"] == 1 })
	pause(statuses, false)
	eventually.True(t, "the account has everything", func() bool { return len(v.updates()) == 3 })

	c.notification.kill()
	say(t, olga, report, said())
	c.notification.start()
	c.awaitReady()
	eventually.True(t, "and what came while the service was down", func() bool { return len(v.updates()) == 4 })
	for news, n := range v.updates() {
		if n != 1 {
			t.Errorf("%s came %d times", news, n)
		}
	}
	if adopted.Reports != 1 {
		t.Errorf("%d reports adopted, want 1", adopted.Reports)
	}
	old := c.As(guest.Sub, guestToken(guest.Sub))
	for _, path := range []string{"/reports/mine", "/notifications"} {
		if err := old.Do(t.Context(), http.MethodGet, path, nil, nil); client.StatusOf(err) != http.StatusUnauthorized || !strings.Contains(err.Error(), "account") {
			t.Errorf("GET %s with the guest's old token: %v", path, err)
		}
	}
	c.searchForAdoption(wires, guest.Sub, accountID)
}

// searchForAdoption finds neither the guest nor the account where others look: in what went
// through the exchanges, in logs, in operators' answers and in the tables but the private ones.
func (c *stack) searchForAdoption(wires map[string]*spy, guestID, accountID string) {
	c.t.Helper()
	leaks := &canary{stack: c, leaks: newLeakDetector(c.t, guestID, accountID)}
	adoptions := 0
	for _, wire := range wires {
		seen, _ := wire.all()
		for _, d := range seen {
			leaks.searchDelivery("through "+d.Exchange, d)
			if d.RoutingKey == string(event.GuestAdoptedKey) {
				adoptions++
			}
		}
	}
	if adoptions != 1 {
		c.t.Errorf("%d messages of the adoption went through the exchange, want 1", adoptions)
	}
	for db, private := range map[*pgxpool.Pool]string{c.reportDB: "reporters", c.notificationDB: "streams"} {
		for _, table := range tables(c.t, db) {
			var text string
			if err := db.QueryRow(c.t.Context(), `select coalesce(string_agg(r::text, E'\n'), '') from `+table+` r`).Scan(&text); err != nil {
				c.t.Fatalf("read %s: %v", table, err)
			}
			if table != private {
				leaks.leaks.check("table "+table, []byte(text))
			} else if table == "reporters" && strings.Contains(text, guestID) {
				c.t.Errorf("the reports are the guest's still: %s", text)
			}
		}
	}
	for _, role := range []string{"operator", "auditor", "official", "resident"} {
		for _, path := range []string{"/admin/outbox/messages", "/admin/dlq/messages", "/admin/reports/settings/audit", "/admin/workers", "/reports", "/reports/queue"} {
			var answer json.RawMessage
			err := c.userOf("x-"+role, role).Do(c.t.Context(), http.MethodGet, path, nil, &answer)
			leaks.leaks.check("GET "+path+" as "+role, fmt.Append(answer, err))
		}
	}
	for _, p := range []*process{c.report, c.notification} {
		log := []byte(p.log.String())
		leaks.leaks.check("the log of "+p.path, log)
		if !bytes.Contains(log, []byte("/guests/adoption")) && p == c.report {
			c.t.Error("the log has no adoption: the test proves nothing")
		}
	}
}

// showPhoto has an official show a photo that is held.
func (c *stack) showPhoto(official *client.Client, report client.Report, photo uuid.UUID) {
	c.t.Helper()
	eventually.True(c.t, "the photo is held", func() bool {
		var held bool
		err := c.reportDB.QueryRow(c.t.Context(), `select state = 'held' from photos where id = $1`, photo).Scan(&held)
		return err == nil && held
	})
	path := "/reports/" + report.ID.String() + "/photos/" + photo.String() + "/show"
	if err := official.Do(c.t.Context(), http.MethodPost, path, nil, nil); err != nil {
		c.t.Fatalf("show a photo: %v", err)
	}
}

// No role can tell a guest's report from one of an account: two worlds in which an account,
// and a guest, filed the same report look the same.
func TestTwoWorldsOfAGuest(t *testing.T) {
	t.Parallel()
	account, guest := person{id: "u-teo-4c1d", name: "Teo"}, person{id: "3f0b0c9e-0d7b-4f3e-8d0b-1e9c1a2b3c4d", guest: true}
	compareWorlds(t, "account/guest", func(t *testing.T, other, leak bool) world {
		author := account
		if other {
			author = guest
		}
		w := play(t, author, leak)
		if len(w["table guests"]) == 0 && author.guest {
			t.Error("no guest has filed: the test proves nothing")
		}
		delete(w, "table guests") // which has that there is a guest, and no report
		return w
	})
}
