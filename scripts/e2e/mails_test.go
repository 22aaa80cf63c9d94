package e2e

import (
	"io"
	"net"
	"net/http"
	netmail "net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/mailtext"
)

// A mailServer takes every mail, and keeps it.
type mailServer struct {
	t       *testing.T
	address string

	mu       sync.Mutex
	mails    []mail
	signal   chan struct{} // closed and replaced with each mail
	refused  map[string]*smtp.SMTPError
	distrust bool // it refuses the sender
	asked    int  // mails, while it does
}

// A mail is one as it came: the envelope, and all of its text as it was sent and as
// it is read.
type mail struct {
	from, to      string
	raw           string
	subject, text string
	html          string
}

// openMailServer has delivery-worker, which is not started yet, send to a server of
// the test, at once.
func (c *stack) openMailServer() *mailServer {
	c.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	s := &mailServer{t: c.t, address: listener.Addr().String(), signal: make(chan struct{})}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{server: s}, nil }))
	server.Domain, server.EnableDSN = "mail.e2e.test", true
	go func() { _ = server.Serve(listener) }() // it ends with its listener
	c.t.Cleanup(func() { _ = server.Close() })
	c.worker.env = with(c.worker.env, "MAIL_URL", "smtp+insecure://"+s.address)
	return s
}

// await waits for n mails, and returns all that have come.
func (s *mailServer) await(n int) []mail {
	s.t.Helper()
	deadline := time.After(eventually.Patience)
	for {
		s.mu.Lock()
		mails, signal := append([]mail(nil), s.mails...), s.signal
		s.mu.Unlock()
		if len(mails) >= n {
			return mails
		}
		select {
		case <-signal:
		case <-deadline:
			s.t.Fatalf("%d mails came, want %d", len(mails), n)
		}
	}
}

// refuse lets mails to an address be refused from now on.
func (s *mailServer) refuse(address string, as *smtp.SMTPError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = make(map[string]*smtp.SMTPError)
	}
	s.refused[address] = as
}

// refuseSender lets every mail be refused for the sender's sake, as a server does
// that trusts it no more, or ends that.
func (s *mailServer) refuseSender(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.distrust = refuse
}

// Refusals of the sender, by the command that they answer. They say nothing about
// the recipient, whose address some of them are an answer to.
var (
	refusalOfMail = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "sender is not allowed"}
	refusalOfRcpt = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 8}, Message: "sender address rejected: domain not found"}
	refusalOfData = &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 7, 26}, Message: "unauthenticated mail"}
)

// distrusts reports whether the server refuses a mail at the command, each of which
// has its turn.
func (s *mailServer) distrusts(command int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if command == 0 && s.distrust {
		s.asked++
	}
	return s.distrust && s.asked%3 == command
}

// refusals returns how many mails were refused for the sender's sake.
func (s *mailServer) refusals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// A mailSession is one connection.
type mailSession struct {
	server *mailServer
	mail   mail
}

func (s *mailSession) Reset()        { s.mail = mail{} }
func (s *mailSession) Logout() error { return nil }

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.mail.from = from; s.server.distrusts(0) {
		return refusalOfMail
	}
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.mail.to = to; s.server.distrusts(1) {
		return refusalOfRcpt
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if refusal := s.server.refused[to]; refusal != nil {
		return refusal
	}
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.server.distrusts(2) {
		return refusalOfData
	}
	content, err := mailtext.Read(raw)
	if err != nil {
		return err
	}
	s.mail.raw, s.mail.subject, s.mail.text, s.mail.html = string(raw), content.Subject, content.Text, content.HTML
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, s.mail)
	close(s.server.signal)
	s.server.signal = make(chan struct{})
	return nil
}

// giveAddress has user prove an address by the code that comes to it, which is the
// next mail of all.
func (s *mailServer) giveAddress(user *client.Client, address string) {
	s.t.Helper()
	s.mu.Lock()
	before := len(s.mails)
	s.mu.Unlock()
	contact := map[string]string{"address": address, "language": "id", "zone": "Asia/Jakarta"}
	if err := user.Do(s.t.Context(), http.MethodPut, "/me/contact", contact, nil); err != nil {
		s.t.Fatal(err)
	}
	if err := user.Do(s.t.Context(), http.MethodPost, "/me/contact/code", nil, nil); err != nil {
		s.t.Fatal(err)
	}
	m := s.await(before + 1)[before]
	code := regexp.MustCompile(`\b\d{6}\b`).FindString(m.subject)
	if m.to != address || code == "" {
		s.t.Fatalf("%q came to %s, want a code for %s", m.subject, m.to, address)
	}
	if err := user.Do(s.t.Context(), http.MethodPost, "/me/contact/verify", map[string]string{"code": code}, nil); err != nil {
		s.t.Fatal(err)
	}
}

// searchMails looks at all that was mailed to the canary: but for the address that
// it goes to, nothing in a mail is of the canary or their reports.
func (c *canary) searchMails() {
	c.t.Helper()
	for _, m := range c.mails.await(1 + len(c.reports)) { // the code, and a new status of each
		everything := strings.Join([]string{m.from, m.raw, m.subject, m.text, m.html}, "\n")
		everything = strings.ReplaceAll(everything, c.address, "")
		c.leaks.check("a mail", []byte(everything))
		if m.to == officeOfFirm { // which is to know what and where
			continue
		}
		for _, r := range c.reports {
			for _, secret := range []string{r.ID.String(), r.Title, "6.91", "107.6"} {
				if strings.Contains(everything, secret) {
					c.t.Errorf("a mail about an anonymous report has %q:\n%s", secret, everything)
				}
			}
		}
	}
}

// Programs that scan mails open every link in them, with and without a browser's word,
// and nothing changes. The one click of a mail provider ends the mails of its kind,
// and nothing else does.
func TestLinksOfMails(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	mails := c.openMailServer()
	c.worker.start()
	ben, ana, olga := c.signIn("Ben", "resident"), c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	mails.giveAddress(ben, "ben@mail.test")
	set := func(path string, body any) {
		t.Helper()
		if err := ben.Do(t.Context(), http.MethodPut, path, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	type body = map[string]any
	set("/me/preferences", body{"email": []string{"report.status.updated"}})
	set("/me/digest", body{"frequency": "daily"})
	public, in := file(t, ben, "Dark crossing"), draft("Rubbish")
	in.PrivacyLevel = "anonymous"
	anonymous, err := ben.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	set("/me/mail-consents", body{"report_id": anonymous.ID, "mail": true})
	move(t, olga, public, "in_progress", "A crew is on its way.")
	move(t, olga, anonymous, "in_progress", "Seen")
	vote(t, ana, public, "upvote") // which is for the summary
	mails.await(3)
	eventually.True(t, "the vote is mailed", func() bool {
		var told bool
		err := c.notificationDB.QueryRow(t.Context(), `select exists (select from notifications where type = 'report.vote.received')`).Scan(&told)
		return err == nil && told
	})
	execute(t, c.notificationDB, `update digests set next_at = now()`)
	execute(t, c.notificationDB, `update schedules set next_at = now() where name like 'digests%'`)
	came := mails.await(4)

	before, opened := c.mailState(), 0
	for _, m := range came {
		for _, link := range m.links() {
			for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodGet} {
				c.openLink(method, link)
				opened++
			}
		}
	}
	if after := c.mailState(); after != before {
		t.Errorf("opened links have changed\n%s\nto\n%s", before, after)
	}
	clicks := 0
	for _, m := range came {
		header, err := netmail.ReadMessage(strings.NewReader(m.raw))
		if err != nil {
			t.Fatal(err)
		}
		if header.Header.Get("List-Unsubscribe-Post") != "List-Unsubscribe=One-Click" {
			continue
		}
		c.click(strings.Trim(header.Header.Get("List-Unsubscribe"), "<>"))
		clicks++
	}
	t.Logf("mails=%d links_opened=%d clicks=%d", len(came), opened, clicks)
	if clicks != 3 {
		t.Errorf("%d mails end by a click, want all but the code", clicks)
	}
	var left int
	err = c.notificationDB.QueryRow(t.Context(), `
		select coalesce(sum(cardinality(kinds)), 0) + (select count(*) from digests) + (select count(*) from mail_consents) from contacts`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d kinds of mails are still wanted after the clicks, error %v", left, err)
	}
}

// mailState returns all that says who is mailed what, and what they have read.
func (c *stack) mailState() (state string) {
	c.t.Helper()
	err := c.notificationDB.QueryRow(c.t.Context(), `select concat_ws(E'\n',
		(select json_agg(c order by id) from contacts c), (select json_agg(d order by stream_id) from digests d),
		(select json_agg(m order by report_id) from mail_consents m), (select json_agg(u order by hash) from unsubscribe_tokens u),
		(select json_agg(r order by reader, stream_id) from read_marks r), (select json_agg(r order by reader, seq) from notification_reads r))`).Scan(&state)
	if err != nil {
		c.t.Fatal(err)
	}
	return state
}

// links returns every address in a mail: in its header, its text and its HTML.
func (m mail) links() []string {
	found := regexp.MustCompile(`https://[^\s"<>]+`).FindAllString(m.raw+" "+m.text+" "+m.html, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// openLink asks for a link as a scanner does, who is nobody.
func (c *stack) openLink(method, link string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.here(link), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		c.t.Errorf("%s %s: status %d, error %v", method, link, res.StatusCode, err)
	}
}

// click ends mails as a provider does (RFC 8058 section 3.2): without a cookie, and
// without following where it may be sent to.
func (c *stack) click(link string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.here(link), strings.NewReader("List-Unsubscribe=One-Click"))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		c.t.Errorf("a click on %s: status %d", link, res.StatusCode)
	}
}

// here returns where a link of a mail leads to in this test.
func (c *stack) here(link string) string {
	return strings.Replace(link, "https://city.test", c.gateway.URL, 1)
}
