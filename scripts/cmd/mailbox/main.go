// Command mailbox is the mail server of a developer's machine: it accepts every
// mail, whomever it is for, passes none on, and shows them on a page. Nothing is
// written to a file; the last 500 are kept.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/cityconnect/cityconnect/scripts/internal/mailtext"
)

const (
	kept       = 500
	maxMail    = 1 << 20
	endTimeout = 2 * time.Second
)

func main() {
	smtpAddr := flag.String("smtp", "127.0.0.1:3024", "the `address` that takes mails")
	httpAddr := flag.String("http", "127.0.0.1:3023", "the `address` of the page")
	flag.Parse()
	if err := run(context.Background(), *smtpAddr, *httpAddr); err != nil {
		fmt.Fprintln(os.Stderr, "mailbox:", err)
		os.Exit(1)
	}
}

// run takes and shows mails until it is stopped.
func run(ctx context.Context, smtpAddr, httpAddr string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &mailbox{}
	mails := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{box: b}, nil }))
	mails.Domain, mails.MaxMessageBytes, mails.EnableDSN = "localhost", maxMail, true
	page := &http.Server{Handler: b.handler(), ReadHeaderTimeout: 5 * time.Second}
	var listen net.ListenConfig
	smtpListener, err := listen.Listen(ctx, "tcp", smtpAddr)
	if err != nil {
		return err
	}
	httpListener, err := listen.Listen(ctx, "tcp", httpAddr)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- mails.Serve(smtpListener) }()
	go func() { failed <- page.Serve(httpListener) }()
	log.Printf("mails at %s, the page at http://%s/", smtpListener.Addr(), httpListener.Addr())
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return errors.Join(err, mails.Close(), page.Shutdown(ending))
}

// A mail is one that came in.
type mail struct {
	ID        int       `json:"id"`
	At        time.Time `json:"at"`
	Sender    string    `json:"sender"` // of the envelope: where bounces go
	To        string    `json:"to"`
	Subject   string    `json:"subject"`
	MessageID string    `json:"message_id"`
	Text      string    `json:"text"`
	HTML      string    `json:"html"`
	Raw       string    `json:"raw"`
}

// A mailbox keeps the last mails.
type mailbox struct {
	mu    sync.Mutex
	mails []mail
	next  int
}

func (b *mailbox) add(m mail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	m.ID = b.next
	if b.mails = append(b.mails, m); len(b.mails) > kept {
		b.mails = b.mails[1:]
	}
}

// list returns the mails, the latest first.
func (b *mailbox) list() []mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	mails := make([]mail, 0, len(b.mails))
	for i := len(b.mails) - 1; i >= 0; i-- {
		mails = append(mails, b.mails[i])
	}
	return mails
}

//go:embed mailbox.html
var pageHTML string

var pageTemplate = template.Must(template.New("mailbox").Parse(pageHTML))

// handler serves the page, the mails as JSON for tests and the demo, and the HTML
// of one mail, which may run nothing and load nothing.
func (b *mailbox) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer
		if err := pageTemplate.Execute(&page, b.list()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'")
		_, _ = page.WriteTo(w)
	})
	mux.HandleFunc("GET /mails.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(b.list())
	})
	mux.HandleFunc("GET /mails/{id}/{form}", func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.Atoi(r.PathValue("id"))
		for _, m := range b.list() {
			if m.ID != id {
				continue
			}
			w.Header().Set("Content-Security-Policy", "sandbox allow-top-navigation-by-user-activation allow-popups; default-src 'none'; style-src 'unsafe-inline'")
			switch r.PathValue("form") {
			case "html":
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				_, _ = io.WriteString(w, m.HTML)
			case "raw":
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				_, _ = io.WriteString(w, m.Raw)
			default:
				http.NotFound(w, r)
			}
			return
		}
		http.NotFound(w, r)
	})
	return mux
}

// A session is one connection of whoever sends.
type session struct {
	box    *mailbox
	sender string
	to     string
}

func (s *session) Reset()        { s.sender, s.to = "", "" }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.sender = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m := mail{At: time.Now(), Sender: s.sender, To: s.to, Raw: string(raw)}
	content, _ := mailtext.Read(raw) // the page shows the rest raw
	m.Subject, m.MessageID, m.Text, m.HTML = content.Subject, content.MessageID, content.Text, content.HTML
	s.box.add(m)
	return nil
}
