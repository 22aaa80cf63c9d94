package email

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"ann@example.org": true, " ann@example.org ": true, "Ann+reports@mail.example.co.id": true, "a_b-c.d@x-y.org": true,
		"": false, "ann": false, "ann@": false, "@example.org": false, "ann@localhost": false, "-ann@example.org": false,
		"ann@[127.0.0.1]": false, "ann@127.0.0.1": false, "Ann <ann@example.org>": false, "ann@example.org, bob@example.org": false,
		"ann..b@example.org": false, ".ann@example.org": false, "ann@exa mple.org": false, "änn@example.org": false,
		"ann@example.org\r\nBcc: bob@example.org": false, "\"ann\"@example.org": false,
		strings.Repeat("a", 65) + "@example.org": false, "a@" + strings.Repeat("b.", 150) + "org": false,
	} {
		got, err := ParseAddress(address)
		if (err == nil) != ok || ok && got != strings.TrimSpace(address) {
			t.Errorf("%q: %q, %v; want it to be %t", address, got, err, ok)
		}
	}
}

// Characters that were copied along with an address are removed, and an
// internationalised name of a host becomes ASCII.
func TestParseAddressCleans(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"ann@example.org.": "ann@example.org", "mailto:ann@example.org": "ann@example.org", "MailTo:Ann@example.org": "Ann@example.org",
		"<ann@example.org>": "ann@example.org", "ann@example.org;": "ann@example.org", "ann@example.org,": "ann@example.org",
		"ann@bücher.example": "ann@xn--bcher-kva.example", "ann@BÜCHER.example": "ann@xn--bcher-kva.example",
		"ann@xn--bcher-kva.example": "ann@xn--bcher-kva.example", "ann@例え.jp": "ann@xn--r8jz45g.jp", "ann@Example.org": "ann@Example.org",
		"\u202aann@example.org\u202c": "ann@example.org", "\u200eann\u200b@example.org\u00a0": "ann@example.org", "\ufeff<ann@example.org>\n": "ann@example.org",
		"ann@ｅxample.org": "ann@example.org", "ann@bu\u0308cher.example": "ann@xn--bcher-kva.example",
	} {
		if got, err := ParseAddress(given); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", given, got, err, want)
		}
	}
}

// A program that finds a link in a text may take what follows for a part of it.
func TestLinkToken(t *testing.T) {
	t.Parallel()
	token := NewToken()
	for _, text := range []string{"", ".", ",", ")", ">", `"`, "'", "=", " ", "\u201d", "\u00a0", ".)", `">here`, "…", "&utm_source=mail", "*", "\u200b"} {
		if got := LinkToken(token + text); got != token {
			t.Errorf("%q: %q, want %q", token+text, got, token)
		}
	}
	for _, other := range []string{token + "x", token + "-", "x" + token, token[1:], "", "."} {
		if got := LinkToken(other); got == token || len(got) != len(other) {
			t.Errorf("%q: %q, want it as it is", other, got)
		}
	}
}

// A mail host of many has its name as a lane, one of few a hash, and no case
// makes another of it.
func TestLanes(t *testing.T) {
	t.Parallel()
	keys := testKeys(t)
	if got := keys.Lane("Ann@GMail.com"); got != "gmail.com" {
		t.Errorf("lane %q, want gmail.com", got)
	}
	small := keys.Lane("ann@family-of-ann.example.org")
	if strings.Contains(small, "ann") || small != keys.Lane("bob@FAMILY-of-ann.example.org") || small == keys.Lane("ann@example.org") {
		t.Errorf("lane %q, want one for the host that does not name it", small)
	}
	if testKeys(t).Lane("ann@family-of-ann.example.org") == small {
		t.Error("the lane can be calculated without the keys")
	}
}

// linkPattern finds addresses in both parts of a mail.
var linkPattern = regexp.MustCompile(`https?://[^\s"<>]+`)

// Every mail is written in every language, has all its links in both parts, and
// escapes what residents and officials wrote.
func TestMailsAreWritten(t *testing.T) {
	t.Parallel()
	report := uuid.New()
	data := func(kind event.Key) json.RawMessage {
		encoded, err := json.Marshal(notification.Data{
			Type: kind, ReportID: report, ReportTitle: `<b>Pothole</b> & "lamp"`, Status: event.InProgress, Note: "First line\nsecond <i>line</i>",
			Score: new(int64(3)), HappenedAt: time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC),
		})
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	jakarta, err := time.LoadLocation("Asia/Jakarta")
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range wording.Languages {
		for kind, items := range map[string][]wording.Item{
			Code:                           nil,
			Anonymous:                      {{Data: data(event.StatusUpdatedKey), Withheld: true}},
			string(event.StatusUpdatedKey): {{Data: data(event.StatusUpdatedKey)}},
			string(event.VoteReceivedKey):  {{Data: data(event.VoteReceivedKey)}},
			Digest: {{Data: data(event.StatusUpdatedKey)}, {Data: data(event.VoteReceivedKey)}, {Data: data("report.unheard_of")},
				{Data: data(event.StatusUpdatedKey), Withheld: true}},
		} {
			m := mailText{Language: language, PublicURL: "https://city.example.org", Zone: jakarta, Total: 30, WithheldItems: 1}
			if kind == Code {
				m.Code = "012345"
			} else {
				m.Unsubscribe = "https://city.example.org/u/token"
			}
			for _, item := range items {
				if err := m.add(item); err != nil {
					t.Fatalf("%s %s: %v", language, kind, err)
				}
			}
			w, err := write(kind, &m)
			if err != nil {
				t.Fatalf("%s %s: %v", language, kind, err)
			}
			if w.Subject == "" || strings.ContainsAny(w.Subject, "\r\n") || strings.Contains(w.Text+w.HTML, "<no value>") {
				t.Errorf("%s %s: subject %q", language, kind, w.Subject)
			}
			if strings.Contains(w.HTML, "<b>Pothole") || strings.Contains(w.HTML, "<i>line") {
				t.Errorf("%s %s: what people wrote is HTML:\n%s", language, kind, w.HTML)
			}
			for _, link := range linkPattern.FindAllString(w.HTML, -1) {
				if !strings.Contains(w.Text, link) {
					t.Errorf("%s %s: the text has no %s", language, kind, link)
				}
			}
			whole := w.Subject + w.Text + w.HTML
			switch kind {
			case Code:
				if !strings.Contains(w.Text, "012345") || !strings.Contains(w.HTML, "012345") {
					t.Errorf("%s: no code in %s", language, w.Text)
				}
			case Anonymous:
				for _, secret := range []string{"Pothole", "second", report.String(), "in progress", "dikerjakan"} {
					if strings.Contains(whole, secret) {
						t.Errorf("%s: a mail about an anonymous report has %q:\n%s", language, secret, whole)
					}
				}
			default:
				if !strings.Contains(w.Text, `<b>Pothole</b> & "lamp"`) || !strings.Contains(w.Text, report.String()) {
					t.Errorf("%s %s: %s", language, kind, w.Text)
				}
			}
		}
	}
}

// Notices to the city's own people name the category of what is overdue, and
// operators' name of an endpoint; they are not unsubscribed from by a link.
func TestNoticesAreWritten(t *testing.T) {
	t.Parallel()
	for _, language := range wording.Languages {
		for kind, tt := range map[string]struct {
			notice Notice
			wants  []string
		}{
			Overdue: {
				Notice{Overdue: []OverdueCount{{CategoryID: 2, Category: "Lights & <signals>", Count: 2}, {CategoryID: 1, Category: "Roads", Count: 1}}},
				[]string{"3 ", "Lights & <signals>", "Roads", "https://city.example.org/queue?overdue=1&order=due&status=all&category=2"},
			},
			EndpointDisabled: {Notice{Endpoint: "Ticket <system>", Reason: "failing"}, []string{"Ticket <system>", "https://city.example.org/ops/webhooks"}},
			TargetDiffers:    {Notice{Endpoint: "Works <department>"}, []string{"Works <department>", "https://city.example.org/ops/back-office"}},
			EndpointFailing:  {Notice{Endpoint: "Ticket <system>", Hours: 60}, []string{"Ticket <system>", "60 ", "https://city.example.org/ops/webhooks"}},
		} {
			m := mailText{Language: language, PublicURL: "https://city.example.org", Zone: time.UTC}
			if err := m.addNotice(&tt.notice); err != nil {
				t.Fatalf("%s %s: %v", language, kind, err)
			}
			w, err := write(kind, &m)
			if err != nil {
				t.Fatalf("%s %s: %v", language, kind, err)
			}
			for _, want := range tt.wants {
				if !strings.Contains(w.Subject+w.Text, want) {
					t.Errorf("%s %s: no %q in %s\n%s", language, kind, want, w.Subject, w.Text)
				}
			}
			if strings.Contains(w.HTML, "<system>") || strings.Contains(w.HTML, "<signals>") || strings.Contains(w.Text, "()") || strings.Contains(w.Text+w.HTML, "/u/") {
				t.Errorf("%s %s: %s\n%s", language, kind, w.Text, w.HTML)
			}
		}
	}
}
