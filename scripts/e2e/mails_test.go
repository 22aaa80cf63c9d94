package e2e

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/jhillyerd/enmime/v2"

	"github.com/cityconnect/cityconnect/scripts/internal/client"
)

// A mailServer takes every mail, and keeps it.
type mailServer struct {
	t       *testing.T
	address string

	mu     sync.Mutex
	mails  []mail
	signal chan struct{} // closed and replaced with each mail
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
	deadline := time.After(patience)
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

// A mailSession is one connection.
type mailSession struct {
	server *mailServer
	mail   mail
}

func (s *mailSession) Reset()        { s.mail = mail{} }
func (s *mailSession) Logout() error { return nil }

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	s.mail.from = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to = to
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	envelope, err := enmime.ReadEnvelope(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	s.mail.raw, s.mail.subject, s.mail.text, s.mail.html = string(raw), envelope.GetHeader("Subject"), envelope.Text, envelope.HTML
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
// it goes to, nothing in a mail is of him or of what he filed.
func (c *canary) searchMails() {
	c.t.Helper()
	for _, m := range c.mails.await(1 + len(c.reports)) { // the code, and a new status of each
		everything := strings.Join([]string{m.from, m.raw, m.subject, m.text, m.html}, "\n")
		everything = strings.ReplaceAll(everything, c.address, "")
		c.leaks.check("a mail", []byte(everything))
		for _, r := range c.reports {
			for _, secret := range []string{r.ID.String(), r.Title, "6.91", "107.6"} {
				if strings.Contains(everything, secret) {
					c.t.Errorf("a mail about an anonymous report has %q:\n%s", secret, everything)
				}
			}
		}
	}
}
