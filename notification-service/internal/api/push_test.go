package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/event"
)

// pushing gives a server a key to push with.
func pushing(t *testing.T) (func(*parts), *push.Config) {
	t.Helper()
	private, _ := push.NewKey()
	cfg := &push.Config{VAPIDKey: private, Contact: "mailto:operations@city.example.org", AllowHosts: []string{"*.push.example.org"}}
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Fatal(faults)
	}
	ring, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	return func(p *parts) {
		p.Push = api.Push{Keys: push.NewKeys(ring), Config: cfg}
	}, cfg
}

// subscription is what a browser says of itself (RFC 8291 appendix A).
func subscription(endpoint string) string {
	return `{"endpoint":"` + endpoint + `","keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"},"language":"id"}`
}

type device struct {
	ID      uuid.UUID
	Label   string
	Created string `json:"created_at"`
}

// A browser is registered once and removed by its owner alone. No answer has the
// address that is sent to, and none is taken that leads elsewhere.
func TestDevices(t *testing.T) {
	t.Parallel()
	enable, cfg := pushing(t)
	s := newServer(t, enable)
	ann, bob := s.token("ann", auth.Resident), s.token("bob", auth.Resident)
	var key struct{ Key string }
	s.do(call{method: "GET", path: "/push/key"}, 401, nil)
	s.do(call{method: "GET", path: "/push/key", token: ann}, 200, &key)
	if key.Key != cfg.PublicKey() {
		t.Errorf("key %q, want %q", key.Key, cfg.PublicKey())
	}
	const endpoint = "https://updates.push.example.org/send/abcdef"
	firefox := map[string]string{"User-Agent": "Mozilla/5.0 (Android 16; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0"}
	var first, again device
	s.do(call{method: "POST", path: "/me/push", token: ann, body: subscription(endpoint), headers: firefox}, 201, &first)
	s.do(call{method: "POST", path: "/me/push", token: ann, body: subscription(endpoint), headers: firefox}, 200, &again)
	if first != again || first.Label != "Firefox, Android" {
		t.Errorf("devices %+v and %+v, want one", first, again)
	}
	var list json.RawMessage
	s.do(call{method: "GET", path: "/me/push", token: ann}, 200, &list)
	if strings.Contains(string(list), "push.example.org") || strings.Contains(string(list), "BTBZ") || !strings.Contains(string(list), first.ID.String()) {
		t.Errorf("list %s, want the device without its address", list)
	}
	if n := s.number(`select count(*) from push_subscriptions t where t::text like '%abcdef%' or t::text like '%BTBZ%'`); n != 0 {
		t.Error("the address is readable in the database")
	}
	for _, wrong := range []string{
		subscription("https://evil.example.org/"), subscription("http://updates.push.example.org/"), subscription("https://127.0.0.1/send"),
		subscription("https://push.example.org/"), subscription(""),
		strings.Replace(subscription(endpoint), "BCVx", "BCVy", 1), strings.Replace(subscription(endpoint), "BTBZ", "B", 1),
		strings.Replace(subscription(endpoint), `"id"`, `"fr"`, 1), `{}`,
	} {
		s.do(call{method: "POST", path: "/me/push", token: ann, body: wrong}, 400, nil)
	}
	s.do(call{method: "DELETE", path: "/me/push/" + first.ID.String(), token: bob}, 204, nil)
	if s.number(`select count(*) from push_subscriptions`) != 1 {
		t.Fatal("somebody else has removed the device")
	}
	s.do(call{method: "DELETE", path: "/me/push/x", token: ann}, 400, nil)
	for range 2 {
		s.do(call{method: "DELETE", path: "/me/push/" + first.ID.String(), token: ann}, 204, nil)
	}
	for i := range push.MaxDevices {
		s.do(call{method: "POST", path: "/me/push", token: ann, body: subscription(fmt.Sprint(endpoint, i))}, 201, nil)
	}
	s.do(call{method: "POST", path: "/me/push", token: ann, body: subscription(endpoint)}, 409, nil)
}

// A subscription is taken exactly as browsers serialise it, and as libraries do that
// write its keys in base64 with padding: it is the same one.
func TestDevicesAsBrowsersSerialiseThem(t *testing.T) {
	t.Parallel()
	enable, _ := pushing(t)
	s := newServer(t, enable)
	ann := s.token("ann", auth.Resident)
	const endpoint = "https://jmt17.push.example.org/fcm/send/abcdef:APA91b"
	plain := strings.Replace(subscription(endpoint), `,"language":"id"`, "", 1)
	var first device
	s.do(call{method: "POST", path: "/me/push", token: ann, body: plain, headers: map[string]string{"Accept-Language": "in-ID,in;q=0.9"}}, 201, &first)
	if s.number(`select count(*) from push_subscriptions where language = 'id'`) != 1 {
		t.Error("the language is not that of the browser")
	}
	for _, body := range []string{
		strings.Replace(plain, `,"keys"`, `,"expirationTime":null,"keys"`, 1),
		strings.Replace(plain, `,"keys"`, `,"expirationTime":1795773600000.5,"keys"`, 1),
		strings.Replace(plain, `"}}`, `=="}}`, 1),
		strings.NewReplacer("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
			"BCVxsr7N/eNgVRqvHtD0zTZsEc6+VV+JvLexhqUzORcxaOzi6+AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4=").Replace(plain),
	} {
		var again device
		s.do(call{method: "POST", path: "/me/push", token: ann, body: body}, 200, &again)
		if again.ID != first.ID {
			t.Errorf("%s is another device", body)
		}
	}
	s.do(call{method: "POST", path: "/me/push", token: ann, body: strings.Replace(plain, `,"keys"`, `,"expirationTime":"soon","keys"`, 1)}, 400, nil)
}

// The events for devices are a preference beside that of mails, also without an
// address; old pages, which do not know it, leave it as it is.
func TestPushPreferences(t *testing.T) {
	t.Parallel()
	enable, _ := pushing(t)
	s := newServer(t, enable)
	ann := s.token("ann", auth.Resident)
	wanted := func(want string) {
		t.Helper()
		var got json.RawMessage
		s.do(call{method: "GET", path: "/me/preferences", token: ann}, 200, &got)
		if strings.TrimSpace(string(got)) != want {
			t.Errorf("preferences %s, want %s", got, want)
		}
	}
	put := func(body string, status int) {
		t.Helper()
		s.do(call{method: "PUT", path: "/me/preferences", token: ann, body: body}, status, nil)
	}
	wanted(`{"email":[]}`) // nothing until it is asked for
	s.do(call{method: "POST", path: "/me/push", token: ann, body: subscription("https://a.push.example.org/1")}, 201, nil)
	wanted(`{"email":[],"push":["report.status.updated","report.question.asked","report.question.reminded"]}`)
	put(`{"email":[],"push":["report.vote.received"]}`, 200)
	wanted(`{"email":[],"push":["report.vote.received"]}`)
	put(`{"email":["report.vote.received"],"push":[]}`, 404) // there is no address
	put(`{"email":[],"push":[],"quiet_hours":{"from":"22:00","to":"06:00"}}`, 404)
	put(`{"email":[]}`, 404)
	put(`{"email":[],"push":["report.created"]}`, 400)
	wanted(`{"email":[],"push":["report.vote.received"]}`)
	s.do(call{method: "PUT", path: "/me/contact", token: ann, body: annsContact}, 200, nil)
	put(`{"email":["report.status.updated"]}`, 200)
	wanted(`{"email":["report.status.updated"],"push":["report.vote.received"]}`)
	put(`{"email":[],"push":[]}`, 200)
	wanted(`{"email":[]}`)
}

// Where nothing is pushed there are no devices; where no mails are sent, devices
// can get pushes about anonymous reports all the same.
func TestWithoutPushOrMail(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := s.token("ann", auth.Resident)
	s.do(call{method: "GET", path: "/push/key", token: ann}, 404, nil)
	s.do(call{method: "GET", path: "/me/push", token: ann}, 404, nil)
	s.do(call{method: "POST", path: "/me/push", token: ann, body: subscription("https://a.push.example.org/1")}, 404, nil)
	s.do(call{method: "DELETE", path: "/me/push/" + uuid.NewString(), token: ann}, 404, nil)

	enable, _ := pushing(t)
	s = newServer(t, enable, func(p *parts) { p.Mail = api.Mail{} })
	ann = s.token("ann", auth.Resident)
	s.do(call{method: "GET", path: "/me/contact", token: ann}, 404, nil)
	s.do(call{method: "PUT", path: "/me/preferences", token: ann, body: `{"email":[],"push":["report.status.updated"]}`}, 200, nil)
	s.do(call{method: "PUT", path: "/me/preferences", token: ann, body: `{"email":["report.status.updated"],"push":[]}`}, 404, nil)
	s.do(call{method: "PUT", path: "/me/mail-consents", token: ann, body: `{"report_id":"` + uuid.NewString() + `","mail":true}`}, 204, nil)
	if s.number(`select count(*) from mail_consents`) != 1 {
		t.Error("the consent is not kept")
	}
	s = newServer(t, func(p *parts) { p.Mail = api.Mail{} })
	ann = s.token("ann", auth.Resident)
	s.do(call{method: "GET", path: "/me/preferences", token: ann}, 404, nil)
	s.do(call{method: "PUT", path: "/me/mail-consents", token: ann, body: `{"report_id":"` + uuid.NewString() + `","mail":true}`}, 404, nil)
}
