package email

import (
	"bytes"
	"encoding/base64"
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
		{"mailbox has moved", report(to, "delivery-status", status("failed", "5.1.6"), headers), Bounce{42, "5.1.6", true}},
		{"mailbox is disabled", report(to, "delivery-status", status("failed", "5.2.1"), headers), Bounce{42, "5.2.1", true}},
		{"sender's address", report(to, "delivery-status", status("failed", "5.1.7"), headers), Bounce{42, "5.1.7", false}},
		{"sender's domain", report(to, "delivery-status", status("failed", "5.1.8"), headers), Bounce{42, "5.1.8", false}},
		{"no such domain", report(to, "delivery-status", status("failed", "5.1.2"), headers), Bounce{42, "5.1.2", false}},
		{"address, undefined", report(to, "delivery-status", status("failed", "5.1.0"), headers), Bounce{42, "5.1.0", false}},
		{"policy", report(to, "delivery-status", status("failed", "5.7.1"), headers), Bounce{42, "5.7.1", false}},
		{"given up after days", report(to, "delivery-status", status("failed", "4.4.7"), headers), Bounce{42, "4.4.7", false}},
		{"by the Message-ID alone", report("postmaster@city.example.org", "delivery-status", status("failed", "5.1.1"), headers), Bounce{42, "5.1.1", true}},
		{"no status", report(to, "delivery-status", status("failed", ""), headers), Bounce{42, "5.1.1", true}},
		{"as Exim says", report(to, "delivery-status", strings.Replace(status("failed", "5.0.0"), "550 5.1.1", "SMTP error from host 5.20.30.40 after RCPT TO: 550-5.1.1", 1), headers),
			Bounce{42, "5.1.1", true}},
		{"an address that looks like a code", report(to, "delivery-status", strings.Replace(status("failed", "5.0.0"), "550 5.1.1 <ann@example.org>: no such user", "550 refused by 5.1.1.40", 1), headers),
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

// Mail servers, and what passes mails on, keep to the standards more or less. What
// programs read of a report is found wherever it is readable, and nowhere else.
func TestParseBounceAsServersWrite(t *testing.T) {
	t.Parallel()
	keys := testKeys(t)
	to := "bounce+" + keys.DeliveryToken(42) + "@bounces.city.example.org"
	const original = "Content-Type: text/rfc822-headers\n\nSubject: x\n"
	usual := report(to, "delivery-status", status("failed", "5.1.1"), original)
	explained := func(explanation string) string {
		return strings.Replace(usual, "Content-Type: text/plain\r\n\r\nI could not deliver your mail.\r\n", strings.ReplaceAll(explanation, "\n", "\r\n"), 1)
	}
	said := func(kind, encoding, body string) string {
		return report(to, "delivery-status", "Content-Type: "+kind+"\nContent-Transfer-Encoding: "+encoding+"\n\n"+body, original)
	}
	_, fields, _ := strings.Cut(status("failed", "5.1.1"), "\n\n")
	encoded := base64.StdEncoding.EncodeToString([]byte(fields + "\n\n"))
	hard := Bounce{42, "5.1.1", true}
	for _, tt := range []struct {
		name    string
		message string
		want    Bounce // the zero value: none
	}{
		{"line ends without CR", strings.ReplaceAll(usual, "\r\n", "\n"), hard},
		{"line ends of both kinds", strings.Replace(usual, "\r\n--b\r\n", "\n--b\n", 1), hard},
		{"a line of a mailbox's file first", "From MAILER-DAEMON Thu Sep 18 17:07:04 2014\n" + usual, hard},
		{"no final boundary", strings.TrimSuffix(usual, "--b--\r\n"), hard},
		{"cut off after the status", usual[:strings.Index(usual, "Diagnostic-Code")], hard},
		{"cut off before the status", usual[:strings.Index(usual, "Status:")], Bounce{42, "5.0.0", false}},
		{"cut off in the explanation", usual[:strings.Index(usual, "your mail")], Bounce{}},
		{"no boundary is named", strings.Replace(usual, `; boundary="b"`, "", 1), Bounce{}},
		{"the boundary is another", strings.Replace(usual, `boundary="b"`, `boundary="c"`, 1), Bounce{}},
		{"parameters that cannot be read", strings.Replace(usual, `boundary="b"`, `boundary="b`, 1), Bounce{}},
		{"in capitals", strings.Replace(usual, "multipart/report", "Multipart/Report", 1), hard},
		{"the whole mail is said to be encoded", strings.Replace(usual, "MIME-Version", "Content-Transfer-Encoding: base64\r\nMIME-Version", 1), hard},

		{"explained in an unknown charset", explained("Content-Type: text/plain; charset=x-klingon\n\n\xff\xfe\n"), hard},
		{"explained in an unknown encoding", explained("Content-Type: text/plain\nContent-Transfer-Encoding: x-uuencode\n\nbegin 644 x\n"), hard},
		{"explained in invalid base64", explained("Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n====\n"), hard},
		{"explained in two forms", explained("Content-Type: multipart/alternative; boundary=\"bb\"\n\n--bb\n\ntext\n--bb\nContent-Type: text/html\n\n<p>text\n--bb--\n"), hard},
		{"explained with pictures", explained("Content-Type: multipart/related; boundary=\"bb\"\n\n--bb\nContent-Type: text/html\n\n<p>text\n--bb\nContent-Type: image/png\n\nx\n--bb--\n"), hard},
		{"explained in parts without an end", explained("Content-Type: multipart/alternative; boundary=\"bb\"\n\n--bb\n\ntext\n"), hard},
		{"explained twice", explained("Content-Type: text/plain\n\ntext\n--b\nContent-Type: text/html\n\n<p>text\n"), hard},
		{"an invalid header of a part", explained("Content-Type: text/plain;\ncharset=utf-8\n\ntext\n"), hard},
		{"a report in the explanation", strings.Replace(explained("Content-Type: multipart/mixed; boundary=\"bb\"\n\n--bb\n"+status("failed", "5.1.1")+"--bb--\n"),
			"message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.org\r\n\r\nFinal-Recipient: rfc822; ann@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 <ann@example.org>: no such user\r\n\r\n--b\r\n", "text/plain\r\n\r\n\r\n--b\r\n", 1), hard},

		{"a report about a report", report(to, "delivery-status", status("delayed", "4.4.1"), "Content-Type: message/rfc822\n\n"+
			strings.NewReplacer("--b", "--bb", `"b"`, `"bb"`, "\r", "").Replace(usual)), Bounce{}},

		{"a status with characters of all languages", said("message/global-delivery-status", "8bit", strings.Replace(fields, "ann@", "änn@", 1)), hard},
		{"a status in base64", said("message/global-delivery-status", "base64", encoded), hard},
		{"base64 that is broken at its end", said("message/delivery-status", "base64", encoded[:len(encoded)-6]+"!\n"), hard},
		{"base64 that is cut off", said("message/delivery-status", "base64", encoded[:len(encoded)-6]), hard},
		{"invalid base64", said("message/delivery-status", "base64", "!"+encoded), Bounce{}},
		{"a status in quoted-printable", said("message/delivery-status", "quoted-printable", strings.ReplaceAll(fields, "@", "=40")), hard},
		{"invalid quoted-printable", said("message/delivery-status", "quoted-printable", strings.ReplaceAll(fields, "no such", "=no=such=")), hard},
		{"an unknown encoding", said("message/delivery-status", "7-bit (as ever)", fields), hard},
		{"an invalid parameter", said("message/delivery-status; name", "7bit", fields), hard},
		{"fields without an empty line between", said("message/delivery-status", "7bit", strings.Replace(fields, "\n\n", "\n", 1)), hard},
		{"empty lines first", said("message/delivery-status", "7bit", "\n\n\n"+fields), hard},
		{"a line without a field", said("message/delivery-status", "7bit", "delivery failed\n"+fields), hard},
		{"an answer that is not indented", said("message/delivery-status", "7bit", strings.Replace(fields, "no such", "\nno such", 1)), hard},
		{"the second recipient's", said("message/delivery-status", "7bit", strings.Replace(fields, "Final-", "Final-Recipient: rfc822; bob@example.org\nAction: relayed\n\nFinal-", 1)), hard},
		{"an empty status", said("message/delivery-status", "7bit", ""), Bounce{}},
	} {
		b, err := keys.ParseBounce(strings.NewReader(tt.message))
		if (tt.want == Bounce{}) != errors.Is(err, ErrNoBounce) || b != tt.want {
			t.Errorf("%s: %+v, %v; want %+v\n%s", tt.name, b, err, tt.want, tt.message)
		}
	}
}

// Bounces and complaints of real servers and mailbox providers, with our addresses.
func TestParseBounceByKind(t *testing.T) { //nolint:funlen // most of it is the table
	t.Parallel()
	keys := testKeys(t)
	token := keys.DeliveryToken(42)
	to := "bounce+" + token + "@bounces.city.example.org"
	original := "Message-ID: <" + token + "@city.example.org>\nSubject: Status: user unknown\n"
	feedback := func(kind string) string {
		return report("fbl@city.example.org", "feedback-report", "Content-Type: message/feedback-report\n\nUser-Agent: x/1\nVersion: 1\n"+kind,
			"Content-Type: message/rfc822\n\n"+original)
	}
	failed := func(fields string) string {
		return report(to, "delivery-status", "Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.org\n\nFinal-Recipient: rfc822; ann@example.org\n"+fields, "Content-Type: message/rfc822\n\n"+original)
	}
	usual := failed("Action: failed\nStatus: 5.1.1\n")
	headers, body, _ := strings.Cut(usual, "MIME-Version: 1.0\r\n")
	inside := func(kind string) string {
		return headers + "MIME-Version: 1.0\r\nContent-Type: " + kind + "; boundary=o\r\n\r\n--o\r\n" + body + "\r\n--o\r\nContent-Type: text/plain\r\n\r\nThis mail came from outside.\r\n--o--\r\n"
	}
	text := func(from, body string) string {
		return "From: " + from + "\nTo: " + to + "\nSubject: failure notice\n\n" + body
	}
	for _, tt := range []struct {
		name    string
		message string
		want    Bounce // the zero value: none
	}{
		{"spam", feedback("Feedback-Type: abuse\n"), Bounce{42, "complaint", true}},
		{"spam, with a comment", feedback("Feedback-Type: Abuse (by button)\n"), Bounce{42, "complaint", true}},
		{"a forwarder's report of DMARC", feedback("Feedback-Type: auth-failure\nAuth-Failure: dmarc\n"), Bounce{}},
		{"no spam", feedback("Feedback-Type: not-spam\n"), Bounce{}},
		{"a virus", feedback("Feedback-Type: virus\n"), Bounce{}},
		{"of no type", feedback(""), Bounce{}},
		{"was displayed (RFC 8098)", report(to, "disposition-notification", "Content-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; ann@example.org\nDisposition: automatic-action/MDN-sent-automatically; deleted\n", "Content-Type: text/plain\n\nuser unknown"), Bounce{}},

		{"beside a footer", inside("multipart/mixed"), Bounce{42, "5.1.1", true}},
		{"of no report's type", strings.Replace(usual, "multipart/report; report-type=delivery-status", "multipart/mixed", 1), Bounce{42, "5.1.1", true}},
		{"a comment in the action", failed("Action: failed (permanent failure)\nStatus: 5.1.1 (bad destination mailbox address)\n"), Bounce{42, "5.1.1", true}},
		{"late, with a comment", failed("Action: delayed (will be failed later)\nStatus: 4.4.7\n"), Bounce{}},
		{"no action", failed("Status: 5.1.1\n"), Bounce{42, "5.1.1", true}},
		{"no action, a temporary status", failed("Status: 4.2.2\n"), Bounce{}},
		{"too much mail at once, as Gmail says", failed("Action: failed\nStatus: 5.2.1\nDiagnostic-Code: smtp; 550-5.2.1 The user you are trying to contact is receiving mail at a rate that\n 550-5.2.1 prevents additional messages from being delivered.\n"),
			Bounce{42, "4.4.5", false}},
		{"words alone", failed("Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 550 Unknown user: ann@example.org\n"), Bounce{42, "5.1.1", true}},
		{"words of a full mailbox", failed("Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 552 Mailbox is full / quota exceeded\n"), Bounce{42, "5.2.2", false}},
		{"words of policy", failed("Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 554 Message rejected as spam\n"), Bounce{42, "5.0.0", false}},

		{"qmail", text("MAILER-DAEMON@mx.example.org", `Hi. This is the qmail-send program at mx.example.org.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<ann@example.org>:
Sorry, no mailbox here by that name. (#5.1.1)

--- Below this line is a copy of the message.

`+original), Bounce{42, "5.1.1", true}},
		{"qmail of a full mailbox", text("MAILER-DAEMON@mx.example.org", `Hi. This is the qmail-send program at mx.example.org.
This is a permanent error; I've given up. Sorry it didn't work out.

<ann@example.org>:
The users mailfolder is over the allowed quota (size). (#5.2.2)

--- Below this line is a copy of the message.

`+original), Bounce{42, "5.2.2", false}},
		{"Exim", text("Mail Delivery System <Mailer-Daemon@mx.example.org>", `This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  ann@example.org
    SMTP error from remote mail server after RCPT TO:<ann@example.org>:
    host mx.example.org [192.0.2.1]: 550 <ann@example.org>: User
    unknown

------ This is a copy of the message, including all the headers. ------

`+original), Bounce{42, "5.1.1", true}},
		{"Exim, late", text("Mail Delivery System <Mailer-Daemon@mx.example.org>", `This message was created automatically by mail delivery software.
A message that you sent has not yet been delivered to one or more of its
recipients after more than 24 hours on the queue on mx.example.org.
No action is required on your part. Delivery attempts will continue for
some time. 451 user unknown

------ This is a copy of the message, including all the headers. ------
`+original), Bounce{}},
		{"sendmail", text("Mail Delivery Subsystem <MAILER-DAEMON@mx.example.org>", `The original message was received at Thu, 18 Sep 2014 17:07:04 +0200

   ----- The following addresses had permanent fatal errors -----
<ann@example.org>

   ----- Transcript of session follows -----
550 5.1.1 <ann@example.org>... User unknown

   ----- Original message follows -----
`+original), Bounce{42, "5.1.1", true}},
		{"sendmail, late", text("Mail Delivery Subsystem <MAILER-DAEMON@mx.example.org>", `    **********************************************
    **      THIS IS A WARNING MESSAGE ONLY      **
    **  YOU DO NOT NEED TO RESEND YOUR MESSAGE  **
    **********************************************
   ----- The following addresses had transient non-fatal errors -----
<ann@example.org>
Warning: message still undelivered after 4 hours
Will keep trying until message is 5 days old
`+original), Bounce{}},
		{"without a reason", text("postmaster@example.org", "Your message could not be delivered.\n\n"+original), Bounce{42, "5.0.0", false}},
		{"words in the copied mail", text("postmaster@example.org", "Your message could not be delivered: rejected.\n-----Original Message-----\n"+original), Bounce{42, "5.0.0", false}},
		{"on holiday", text("Ann <ann@example.org>", "I am away. A permanent error: user unknown.\n"), Bounce{}},
		{"a postmaster's greeting", text("postmaster@example.org", "Your mail has arrived.\n"), Bounce{}},
	} {
		for _, message := range []string{tt.message, strings.ReplaceAll(strings.ReplaceAll(tt.message, "\r\n", "\n"), "\n", "\r\n")} {
			b, err := keys.ParseBounce(strings.NewReader(message))
			if (tt.want == Bounce{}) != errors.Is(err, ErrNoBounce) || b != tt.want {
				t.Errorf("%s: %+v, %v; want %+v\n%s", tt.name, b, err, tt.want, message)
			}
		}
	}
}

// The work for a mail grows with its size alone, whatever is in it: a mail of
// twice as many parts or lines costs twice as much.
func TestParseBounceCost(t *testing.T) {
	keys := testKeys(t)
	head := "To: bounce+" + keys.DeliveryToken(42) + "@bounces.city.example.org\nContent-Type: multipart/report; boundary=b\n"
	const begin, statusBegin = "\n--b\n", "\n--b\nContent-Type: message/delivery-status\n\n"
	const failed = "Action: failed\nStatus: 5.1.1\n"
	deeper := func(size int) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "--b%d\nContent-Type: multipart/mixed; boundary=b%d\n\n", i, i+1)
		}
		return b.String()
	}
	repeat := func(s string) func(int) string {
		return func(size int) string { return strings.Repeat(s, size/len(s)) }
	}
	for _, tt := range []struct {
		name   string
		before string
		fill   func(size int) string
		after  string
		want   string // the code; empty: no bounce
	}{
		{"parts", "", repeat("\n--b\n\n"), statusBegin + failed, ""}, // more than are read
		{"parts in parts", "\n--b\nContent-Type: multipart/mixed; boundary=b0\n\n", deeper, statusBegin + failed, "5.1.1"},
		{"parts with invalid headers", "", repeat("\n--b\nx\n"), statusBegin + failed, ""},
		{"almost boundaries", begin + "\n", repeat("\n--bx"), statusBegin + failed, "5.1.1"},
		{"fields of a header", "", repeat("a:\n"), statusBegin + failed, "5.1.1"},
		{"fields of a part", begin, repeat("a:\n"), "\n" + statusBegin + failed, "5.1.1"},
		{"lines without a part", "", repeat("\n"), "", ""},
		{"lines behind an invalid header", begin + "x\n", repeat("\n"), "", ""},
		{"empty lines of a status", statusBegin, repeat("\n"), failed, "5.1.1"},
		{"recipients", statusBegin, repeat("a:\n\n"), failed, "5.1.1"},
		{"lines without a field", statusBegin, repeat("x\n"), failed, "5.1.1"},
		{"a long line of a status", statusBegin, repeat("x"), "\n" + failed, "5.1.1"},
	} {
		cost := func(size int) float64 {
			mail := head + tt.before + tt.fill(size) + tt.after
			return testing.AllocsPerRun(1, func() {
				if b, _ := keys.ParseBounce(strings.NewReader(mail)); b.Code != tt.want {
					t.Errorf("%s in %d bytes: %+v, want %q", tt.name, len(mail), b, tt.want)
				}
			})
		}
		if half, whole := cost(MaxBounce/4), cost(MaxBounce/2); whole > 2.2*half+100 {
			t.Errorf("%s: %.0f allocations for twice a mail of %.0f", tt.name, whole, half)
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
	const perByte, besides = 120, 256 << 10
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

// Whatever a report has in it, it is a bounce of the delivery whose token it has, or
// none.
func FuzzParseBounce(f *testing.F) {
	f.Add(report("bounce+a@b.example.org", "delivery-status", status("failed", "5.1.1"), "Content-Type: text/plain\n\n"))
	f.Add(report("bounce+a@b.example.org", "delivery-status", "Content-Type: message/global-delivery-status\nContent-Transfer-Encoding: base64\n\nQWN0aW9uOiBmYWlsZWQK\n", "\n"))
	f.Add(report("bounce+a@b.example.org", "feedback-report", "Content-Type: message/feedback-report\n\nFeedback-Type: abuse\n", "\n"))
	f.Add("")
	keys := testKeys(f)
	token := "\n<" + keys.DeliveryToken(42) + "@city.example.org>"
	f.Fuzz(func(t *testing.T, message string) {
		if len(message)+len(token) > MaxBounce {
			return // the token would be cut off
		}
		b, err := keys.ParseBounce(strings.NewReader(message + token))
		if err != nil {
			if !errors.Is(err, ErrNoBounce) || b != (Bounce{}) {
				t.Errorf("%+v, %v", b, err)
			}
			return
		}
		if b.Delivery != 42 || !b.Complaint() && statusPattern.FindString(b.Code) != b.Code {
			t.Errorf("a bounce %+v", b)
		}
	})
}
