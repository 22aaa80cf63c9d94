package email

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/event"
)

func testKeys(t testing.TB) *Keys {
	t.Helper()
	ring, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	return NewKeys(ring)
}

// report returns a bounce as mail servers write it.
func report(to, kind, second, third string) string {
	return strings.ReplaceAll(`From: Mail Delivery System <MAILER-DAEMON@mx.example.org>
To: `+to+`
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=`+kind+`; boundary="b"

--b
Content-Type: text/plain

I could not deliver your mail.

--b
`+second+`
--b
`+third+`
--b--
`, "\n", "\r\n")
}

func status(action, code string) string {
	return `Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org

Final-Recipient: rfc822; ann@example.org
Action: ` + action + `
Status: ` + code + `
Diagnostic-Code: smtp; 550 5.1.1 <ann@example.org>: no such user
`
}

// A bounce says which delivery it is about, and whether the address is gone.
func TestParseBounce(t *testing.T) {
	t.Parallel()
	keys := testKeys(t)
	token := keys.DeliveryToken(42)
	to := "bounce+" + token + "@bounces.city.example.org"
	headers := "Content-Type: text/rfc822-headers\n\nMessage-ID: <" + token + "@city.example.org>\n"
	for _, tt := range []struct {
		name    string
		message string
		want    Bounce // the zero value: none
	}{
		{"no such user", report(to, "delivery-status", status("failed", "5.1.1"), headers), Bounce{42, "5.1.1", true}},
		{"address in capitals", report(strings.ToUpper(to), "delivery-status", status("failed", "5.1.1"), "Content-Type: text/plain\n\n"), Bounce{42, "5.1.1", true}},
		{"mailbox is full", report(to, "delivery-status", status("failed", "5.2.2"), headers), Bounce{42, "5.2.2", false}},
		{"given up after days", report(to, "delivery-status", status("failed", "4.4.7"), headers), Bounce{42, "4.4.7", false}},
		{"by the Message-ID alone", report("postmaster@city.example.org", "delivery-status", status("failed", "5.1.1"), headers), Bounce{42, "5.1.1", true}},
		{"no status", report(to, "delivery-status", status("failed", ""), headers), Bounce{42, "5.1.1", true}},
		{"as Exim says", report(to, "delivery-status", strings.Replace(status("failed", "5.0.0"), "550 5.1.1", "SMTP error from host 5.20.30.40 after RCPT TO: 550-5.1.1", 1), headers),
			Bounce{42, "5.1.1", true}},
		{"an address that looks like a code", report(to, "delivery-status", strings.Replace(status("failed", "5.0.0"), "550 5.1.1", "550 refused by 5.1.1.40", 1), headers),
			Bounce{42, "5.0.0", false}},
		{"late", report(to, "delivery-status", status("delayed", "4.4.1"), headers), Bounce{}},
		{"arrived", report(to, "delivery-status", status("delivered", "2.0.0"), headers), Bounce{}},
		{"another's token", report("bounce+"+testKeys(t).DeliveryToken(42)+"@x.example.org", "delivery-status", status("failed", "5.1.1"), "Content-Type: text/plain\n\n"), Bounce{}},
		{"complaint", report("fbl@city.example.org", "feedback-report", "Content-Type: message/feedback-report\n\nFeedback-Type: abuse\nVersion: 1\n",
			"Content-Type: message/rfc822\n\nMessage-ID: <"+token+"@city.example.org>\nSubject: x\n\ntext\n"), Bounce{42, "complaint", true}},
		{"on holiday", "To: " + to + "\r\nSubject: I am on holiday\r\nAuto-Submitted: auto-replied\r\n\r\nBye.\r\n", Bounce{}},
		{"nothing", "", Bounce{}},
	} {
		b, err := keys.ParseBounce(strings.NewReader(tt.message))
		if (tt.want == Bounce{}) != errors.Is(err, ErrNoBounce) || b != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, b, err, tt.want)
		}
	}
}

// A token is the same each time, opens under every key of the ring, and is taken
// from nobody else.
func TestDeliveryToken(t *testing.T) {
	t.Parallel()
	old, fresh := event.NewKey("k1"), event.NewKey("k2")
	parse := func(text string) *Keys {
		ring, err := event.ParseKeyring(text)
		if err != nil {
			t.Fatal(err)
		}
		return NewKeys(ring)
	}
	before, after := parse(old), parse(fresh+","+old)
	token := before.DeliveryToken(7)
	if token != before.DeliveryToken(7) || len(token) != 26 || strings.ToLower(token) != token {
		t.Errorf("token %q, want the same 26 characters each time", token)
	}
	if id, ok := after.Delivery(token); !ok || id != 7 {
		t.Errorf("after a rotation: %d, %t; want 7", id, ok)
	}
	if after.DeliveryToken(7) != token {
		t.Error("a mail that is tried again after a rotation has another Message-ID")
	}
	if id, ok := parse(fresh).Delivery(token); ok {
		t.Errorf("without the key the token leads to %d", id)
	}
	for _, wrong := range []string{"", "a", token[1:], token + "a", strings.Repeat("a", 26), strings.Repeat("!", 26)} {
		if id, ok := before.Delivery(wrong); ok {
			t.Errorf("%q leads to %d", wrong, id)
		}
	}
}

// Anybody can write to the address of bounces: a message costs no more than its
// length allows for. Parts within parts cost a parser that follows them an
// eternity; parameters in pieces, their number squared.
func TestBounceIsReadInProportion(t *testing.T) { // not parallel: it counts the process's allocations
	const perByte, besides = 60, 256 << 10
	keys := testKeys(t)
	token := "To: <" + keys.DeliveryToken(42) + "@city.example.org>\r\n"
	head := token + "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n"
	status := head + "--b\r\n\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n"
	for _, tt := range []struct {
		name, begin string
		part        func(i int) string
	}{
		{"parameters in pieces", token + "Content-Type: multipart/report; boundary=b", func(i int) string { return fmt.Sprintf(";a*%d=x", i) }},
		{"parameters", token + "Content-Type: multipart/report; boundary=b", func(i int) string { return fmt.Sprintf("; a%d=x", i) }},
		{"quotes", token + "Content-Type: multipart/report; boundary=b", func(int) string { return `;a="\"` }},
		{"encoded words", token + "Content-Type: multipart/report; boundary=b\r\nSubject: ", func(int) string { return "=?UTF-8?b?YQ==?= " }},
		{"headers", token, func(i int) string { return fmt.Sprintf("A%d:\r\n", i) }},
		{"long header", token + "Content-Type: multipart/report", func(int) string { return "\r\n ;" }},
		{"parts", head, func(int) string { return "--b\r\n\r\n" }},
		{"almost parts", head + "--b\r\n\r\n", func(int) string { return "\r\n--bx" }},
		{"headers of a part", head + "--b\r\n", func(i int) string { return fmt.Sprintf("A%d:\r\n", i) }},
		{"recipients", status + "\r\n", func(int) string { return "Action: relayed\r\n\r\n" }},
		{"fields of a recipient", status + "\r\n", func(i int) string { return fmt.Sprintf("A%d:\r\n", i) }},
		{"base64", status + "Content-Transfer-Encoding: base64\r\n\r\n", func(int) string { return "=\r\n" }},
		{"quoted-printable", status + "Content-Transfer-Encoding: quoted-printable\r\n\r\n", func(int) string { return "=\r\n" }},
		{"tokens", head, func(int) string { return "<" + strings.Repeat("a", 26) + "@" }},
		{"parts within parts", head, func(i int) string {
			if i == 0 {
				return "--b\r\nContent-Type: multipart/mixed; boundary=b1\r\n\r\n"
			}
			return fmt.Sprintf("--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n", i, i+1)
		}},
	} {
		message := bytes.NewBufferString(tt.begin)
		for i := 0; message.Len() < MaxBounce; i++ {
			message.WriteString(tt.part(i))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = keys.ParseBounce(message)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > besides+perByte*MaxBounce {
			t.Fatalf("%s: allocates %d kB", tt.name, got>>10)
		}
	}
}

func FuzzParseBounce(f *testing.F) {
	f.Add(report("bounce+a@b.example.org", "delivery-status", status("failed", "5.1.1"), "Content-Type: text/plain\n\n"))
	f.Add("")
	keys := testKeys(f)
	f.Fuzz(func(t *testing.T, message string) {
		if b, err := keys.ParseBounce(strings.NewReader(message)); err == nil && b.Delivery == 0 {
			t.Errorf("a bounce of no delivery: %+v", b)
		}
	})
}
