package email

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
	"golang.org/x/time/rate"
)

const (
	// maxPerConnection is after how many mails a connection is replaced: servers
	// have such limits, and answer 421 beyond them.
	maxPerConnection = 100
	// maxIdle is for how long a connection is kept without a mail. Servers wait
	// five minutes (RFC 5321 section 4.5.3.2.7), and the firewalls between less.
	maxIdle = 30 * time.Second
	// quitTimeout bounds the farewell.
	quitTimeout = time.Second
)

// errRelay says that the city's mail server refuses the connection. No mail is at
// fault, and none has left.
var errRelay = errors.New("the mail server does not take mails now")

// signedHeaders are those that a DKIM signature covers (RFC 6376 section 5.4.1).
// Mail providers act on a request to unsubscribe only if it is signed (RFC 8058
// section 4).
var signedHeaders = []string{
	"From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type", "Content-Language", "Auto-Submitted",
	"List-Unsubscribe", "List-Unsubscribe-Post",
}

// A Relay keeps connections to the city's mail server.
type Relay struct {
	config  *Config
	tls     *tls.Config
	idle    chan *connection // holds as many as there may be
	limiter *rate.Limiter
	failing atomic.Bool // the last connection could not be made
}

// NewRelay returns a Relay. The roots are those that the server's certificate is
// checked with; nil are the system's.
func NewRelay(cfg *Config, roots *x509.CertPool) *Relay {
	return &Relay{
		config:  cfg,
		tls:     &tls.Config{ServerName: cfg.Server.Host, RootCAs: roots, MinVersion: tls.VersionTLS12},
		idle:    make(chan *connection, cfg.MailConnections),
		limiter: rate.NewLimiter(rate.Limit(cfg.MailRate), 1),
	}
}

// Ready returns an error while the server refuses the connection. It tries again
// itself, so that no mail has to.
func (r *Relay) Ready(ctx context.Context) error {
	if !r.failing.Load() {
		return nil
	}
	c, err := r.dial(ctx)
	if err != nil {
		return err
	}
	r.keep(c)
	return nil
}

// Deliver hands one mail over. The error is errRelay, that of ctx, or one of
// go-mail's *SendErrors. At most as many mails may be under way at once as there
// are connections.
func (r *Relay) Deliver(ctx context.Context, msg *gomail.Msg) error {
	if err := r.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("%w: too many wait for their turn", errRelay)
	}
	if r.config.Signer != nil {
		if err := r.sign(msg); err != nil {
			return err
		}
	}
	c := r.take()
	kept := c != nil
	for {
		if c == nil {
			var err error
			if c, err = r.dial(ctx); err != nil {
				return err
			}
		}
		err := c.send(ctx, msg)
		if !c.broken {
			r.keep(c) // another may have it from here on
			return err
		}
		c.cut()
		switch {
		case c.began:
			return err
		case kept && ctx.Err() == nil:
			// The server closed a connection that nothing was sent on for a while.
			c, kept = nil, false
		default:
			r.failing.Store(ctx.Err() == nil)
			return fmt.Errorf("%w: it ends the connection", errRelay)
		}
	}
}

// sign adds a DKIM signature to msg. go-mail would do so itself, but folds the
// list of signed headers in the middle of a name: a verifier then reads a space
// there that was not signed.
func (r *Relay) sign(msg *gomail.Msg) error {
	signer := gomail.NewDKIMSigner(host(r.config.From.Address), r.config.MailDKIMSelector, r.config.Signer)
	signer.SignHeaders(signedHeaders...)
	signer.OversignHeaders("From", "To", "Subject") // so that nobody adds a second one
	var rendered bytes.Buffer
	if _, err := msg.WriteTo(&rendered); err != nil { // the next time it writes the same
		return fmt.Errorf("write a mail to sign it: %w", err)
	}
	headers, body, _ := bytes.Cut(rendered.Bytes(), []byte("\r\n\r\n"))
	signature, err := signer.Sign(headers, body)
	if err != nil {
		return fmt.Errorf("sign a mail: %w", err)
	}
	value := strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(signature, "\r\n ", ""), "DKIM-Signature:"))
	msg.SetGenHeaderPreformatted("DKIM-Signature", strings.ReplaceAll(value, "; ", ";\r\n "))
	return nil
}

// Close closes the connections that are kept.
func (r *Relay) Close() {
	for {
		select {
		case c := <-r.idle:
			c.quit()
		default:
			return
		}
	}
}

// take returns a connection that is kept and not too old, or nil.
func (r *Relay) take() *connection {
	for {
		select {
		case c := <-r.idle:
			if time.Since(c.usedAt) < maxIdle {
				return c
			}
			c.quit()
		default:
			return nil
		}
	}
}

// keep keeps a connection for the next mail.
func (r *Relay) keep(c *connection) {
	if c.sent >= maxPerConnection {
		c.quit()
		return
	}
	select {
	case r.idle <- c:
	default: // Ready made one more
		c.quit()
	}
}

// dial connects and signs in. go-mail leaves a connection open that it could do
// neither with.
func (r *Relay) dial(ctx context.Context) (*connection, error) {
	c, stop := &connection{usedAt: time.Now()}, func() bool { return true }
	options := []gomail.Option{
		gomail.WithPort(r.config.Server.Port),
		gomail.WithTimeout(r.config.MailTimeout),
		gomail.WithHELO(host(r.config.From.Address)), // not the name of a container
		gomail.WithTLSConfig(r.tls.Clone()),
		gomail.WithDialContextFunc(func(dialing context.Context, network, address string) (net.Conn, error) {
			raw, err := new(net.Dialer).DialContext(dialing, network, address)
			if err != nil {
				return nil, err
			}
			c.raw = raw
			// go-mail heeds a context until there is a connection, and not in what
			// follows.
			stop = context.AfterFunc(ctx, c.cut)
			if r.config.Server.TLS != Implicit {
				return raw, nil
			}
			encrypted := tls.Client(raw, r.tls)
			return encrypted, encrypted.HandshakeContext(dialing)
		}),
		// Four exchanges for a mail instead of six. A connection that is gone is
		// found by the first of them, before any of the mail is sent.
		gomail.WithoutNoop(), gomail.WithoutRset(),
		gomail.WithoutSMTPUTF8(), // all addresses are ASCII
	}
	switch r.config.Server.TLS {
	case Implicit:
		options = append(options, gomail.WithSSL())
	case StartTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case NoTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	}
	if r.config.Server.User != "" {
		options = append(options, gomail.WithUsername(r.config.Server.User), gomail.WithPassword(r.config.Server.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	if r.config.MailBounceDomain != "" { // headers are enough to recognise the mail, and readers of a bounce need not see the mail
		options = append(options, gomail.WithDSNMailReturnType(gomail.DSNMailReturnHeadersOnly),
			gomail.WithDSNRcptNotifyType(gomail.DSNRcptNotifyFailure))
	}
	var err error
	if c.client, err = gomail.NewClient(r.config.Server.Host, options...); err != nil {
		return nil, fmt.Errorf("%w: %w", errRelay, err)
	}
	c.smtp, err = c.client.DialToSMTPClientWithContext(ctx)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	r.failing.Store(err != nil && !errors.Is(ctx.Err(), context.Canceled))
	if err != nil {
		c.cut()
		return nil, fmt.Errorf("%w: %w", errRelay, err)
	}
	return c, nil
}

// A connection is one to the mail server. One goroutine has it at a time.
type connection struct {
	client *gomail.Client
	smtp   *smtp.Client
	raw    net.Conn // below TLS; set once, before anything else may end it
	sent   int
	usedAt time.Time
	began  bool // the server has heard of the mail that was tried last
	broken bool // nothing more can be sent on it
}

// send sends one mail. Afterwards broken says whether another may follow.
func (c *connection) send(ctx context.Context, msg *gomail.Msg) error {
	c.sent++
	c.began = true
	stop := context.AfterFunc(ctx, c.cut)
	err := c.client.SendWithSMTPClient(c.smtp, msg)
	ended := !stop()
	c.usedAt = time.Now()
	if msg.IsDelivered() {
		c.broken = ended
		return nil
	}
	failed, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		c.broken = true
		return err
	}
	code := failed.ErrorCode()
	early := failed.Reason == gomail.ErrConnCheck || failed.Reason == gomail.ErrSMTPMailFrom
	c.began = !(early && (code == 0 || code == codeClosing))
	// After these answers the server waits for the next mail. After any other failure
	// it may not, and the next mail could become part of this one: the end of a text
	// that broke off, for instance, is written before the next command.
	c.broken = ended || code == 0 || code == codeClosing ||
		failed.Reason != gomail.ErrSMTPMailFrom && failed.Reason != gomail.ErrSMTPRcptTo && failed.Reason != gomail.ErrSMTPDataClose
	return err
}

// codeClosing is the answer of a server that ends the connection.
const codeClosing = 421

// cut ends the connection at once, if there is one.
func (c *connection) cut() {
	if c.raw != nil {
		_ = c.raw.Close()
	}
}

// quit takes leave and ends the connection.
func (c *connection) quit() {
	if c.smtp.UpdateDeadline(quitTimeout) == nil {
		_ = c.smtp.Quit()
	}
	c.cut()
}

// describe returns the reason of an error of dial for the log, whose readers know
// the server, but not the credentials that were sent.
func describe(err error) string {
	return strings.TrimPrefix(err.Error(), errRelay.Error()+": ")
}
