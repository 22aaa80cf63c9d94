package email

import (
	"context"
	"crypto"
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/cityconnect/cityconnect/notification-service/internal/appearance"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/config"
)

// A Config is what an operator may set of the sending of mails. Without MAIL_URL
// none are sent.
type Config struct {
	MailURL          string          `env:"MAIL_URL" example:"smtps://user:password@smtp.example.org:465"`
	MailFrom         string          `env:"MAIL_FROM" example:"CityConnect <no-reply@city.example.org>"`
	MailBounceDomain string          `env:"MAIL_BOUNCE_DOMAIN" example:"bounces.city.example.org"`
	MailRate         int             `env:"MAIL_RATE" envDefault:"20"`
	MailConnections  int             `envDefault:"4"`   // as many as most servers take from one sender
	MailTimeout      time.Duration   `envDefault:"30s"` // far below the lease of a lane
	MailRetryDelays  []time.Duration `env:"MAIL_RETRY_DELAYS" envDefault:"1m,5m,30m,2h,8h,24h"`
	MailDKIMKey      string          `env:"MAIL_DKIM_KEY" lines:"true" example:"the PEM of an RSA or Ed25519 key"`
	MailDKIMSelector string          `env:"MAIL_DKIM_SELECTOR" example:"city2026"`
	DigestSpread     time.Duration   `env:"DIGEST_SPREAD" envDefault:"30m"`
	PublicURL        string          `env:"PUBLIC_URL" example:"https://city.example.org"`
	OfficialsAddress string          `env:"MAIL_OFFICIALS" example:"workbench@city.example.org"`
	OperatorsAddress string          `env:"MAIL_OPERATORS" example:"operations@city.example.org"`
	NoticesLanguage  string          `env:"MAIL_NOTICES_LANGUAGE" envDefault:"en"`

	// CityName is who writes, unless MailFrom has a name of its own. CityLinks are in
	// the footer of every mail.
	CityName  config.CityName  `env:"CITY_NAME" envDefault:"CityConnect" example:"Kota Bogor"`
	CityLinks config.CityLinks `env:"CITY_LINKS" example:"privacy=https://city.example.org/privacy,emergency=112"`

	// Appearance returns the city's colour and the words around mails; nil is none.
	Appearance func(ctx context.Context) appearance.Appearance

	Server Server        // MAIL_URL, read by Validate
	From   *mail.Address // MAIL_FROM, read by Validate
	Signer crypto.Signer // MAIL_DKIM_KEY, read by Validate; nil is none
}

// A Server is the city's mail server, which takes mails from us and passes them on.
type Server struct {
	Host     string
	Port     int
	TLS      TLS
	User     string
	Password string
}

// TLS says how a connection to a mail server is encrypted.
type TLS string

// The ways. None falls back to another.
const (
	Implicit TLS = "implicit" // smtps: from the first byte (RFC 8314)
	StartTLS TLS = "starttls" // smtp: after STARTTLS, or not at all (RFC 3207)
	NoTLS    TLS = "none"     // smtp+insecure: for a mailbox on this machine
)

// schemes has the schemes of MAIL_URL, and their ports.
var schemes = map[string]struct {
	tls  TLS
	port int
}{
	"smtps": {Implicit, 465}, "smtp": {StartTLS, 587}, "smtp+insecure": {NoTLS, 25},
}

// Limits of the settings.
const (
	maxRate       = 10_000
	minRetryDelay = time.Second
	maxSpread     = 6 * time.Hour // a digest for the morning comes in the morning
	maxReadFirst  = time.Hour
)

// perLane is how many mails to one host are under way at once.
const perLane = 2

var selectorPattern = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// Enabled reports whether mails are sent.
func (c *Config) Enabled() bool { return c.MailURL != "" }

// Validate returns everything that is wrong with c.
func (c *Config) Validate() []config.Fault {
	var faults config.Faults
	faults.Check(c.MailRate >= 1 && c.MailRate <= maxRate, "MAIL_RATE", "1 to 10000 mails a second, such as 20")
	outside := func(d time.Duration) bool { return d < minRetryDelay || d > Lifetime }
	faults.Check(!slices.ContainsFunc(c.MailRetryDelays, outside), "MAIL_RETRY_DELAYS", "pauses of 1s to 48h joined by commas, such as 1m,5m,30m")
	faults.Check(c.DigestSpread >= 0 && c.DigestSpread <= maxSpread, "DIGEST_SPREAD", "0s to 6h, such as 30m")
	faults.Check(noneOrAddress(c.OfficialsAddress), "MAIL_OFFICIALS", wantMailbox)
	faults.Check(noneOrAddress(c.OperatorsAddress), "MAIL_OPERATORS", wantMailbox)
	if !c.Enabled() {
		return faults
	}
	var ok bool
	c.Server, ok = parseServer(c.MailURL)
	faults.Check(ok, "MAIL_URL", "an address such as smtps://user:password@smtp.example.org:465, or smtp:// for STARTTLS")
	var err error
	c.From, err = ParseFrom(c.MailFrom)
	faults.Check(err == nil, "MAIL_FROM", wantFrom)
	if err == nil && c.From.Name == "" {
		c.From.Name = string(c.CityName)
	}
	faults.Check(c.MailBounceDomain == "" || addressPattern.MatchString("bounce@"+c.MailBounceDomain), "MAIL_BOUNCE_DOMAIN",
		"the name of a host such as bounces.city.example.org")
	public, err := url.Parse(c.PublicURL)
	faults.Check(err == nil && (public.Scheme == "https" || public.Scheme == "http") && public.Host != "" && public.User == nil &&
		strings.Trim(public.Path, "/") == "" && public.RawQuery == "" && public.Fragment == "",
		"PUBLIC_URL", "the address of the page, such as https://city.example.org")
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	if c.MailDKIMKey != "" {
		c.Signer, err = gomail.PrivKeyFromPEM([]byte(c.MailDKIMKey))
		faults.Check(err == nil, "MAIL_DKIM_KEY", "the PEM of an RSA or Ed25519 key, as openssl genrsa 2048 writes it")
		faults.Check(selectorPattern.MatchString(c.MailDKIMSelector), "MAIL_DKIM_SELECTOR",
			"the name before ._domainkey in DNS, such as city2026")
	}
	return faults
}

// wantFrom says what MAIL_FROM looks like.
const wantFrom = "an address such as CityConnect <no-reply@city.example.org>"

// wantMailbox says what the address of a notice looks like.
const wantMailbox = "an address such as operations@city.example.org"

func noneOrAddress(value string) bool {
	_, err := ParseAddress(value)
	return value == "" || err == nil
}

// mailbox returns where notices to a target go, or "" for nowhere.
func (c *Config) mailbox(target string) string {
	switch target {
	case Officials:
		return c.OfficialsAddress
	case Operators:
		return c.OperatorsAddress
	}
	return ""
}

// ParseFrom reads the value of MAIL_FROM.
func ParseFrom(value string) (*mail.Address, error) {
	from, err := mail.ParseAddress(value)
	if err != nil {
		return nil, err
	}
	_, err = ParseAddress(from.Address)
	return from, err
}

// parseServer reads the value of MAIL_URL.
func parseServer(value string) (s Server, ok bool) {
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return s, false
	}
	scheme, ok := schemes[u.Scheme]
	if !ok {
		return s, false
	}
	s = Server{Host: u.Hostname(), Port: scheme.port, TLS: scheme.tls, User: u.User.Username()}
	s.Password, _ = u.User.Password()
	if port := u.Port(); port != "" {
		if s.Port, err = strconv.Atoi(port); err != nil || s.Port < 1 || s.Port > 65535 {
			return s, false
		}
	}
	return s, true
}

// Addr returns the host and port of s.
func (s Server) Addr() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Ledger returns the dispatcher's part of c. No lane is ever disabled: a mail
// host that fails for days may be back tomorrow, and waiting mails end by themselves.
func (c *Config) Ledger() ledger.Config {
	return ledger.Config{
		Concurrency: c.MailConnections, Timeout: c.MailTimeout, Schedule: c.MailRetryDelays, DisableAfter: 100 * 365 * 24 * time.Hour,
	}
}

// An Intake is the part of the configuration for notification-service, which sends
// no mail: it takes the addresses of readers and their bounces. Without MAIL_FROM
// readers are not asked for any.
type Intake struct {
	MailFrom     string `env:"MAIL_FROM" example:"CityConnect <no-reply@city.example.org>"`
	BounceSecret string `env:"MAIL_BOUNCE_SECRET" example:"$(openssl rand -hex 32)"`
	// ReadFirst is how long a notification has to be read on the page before it
	// is mailed.
	ReadFirst time.Duration `env:"MAIL_READ_FIRST" envDefault:"2m"`
	Officials string        `env:"MAIL_OFFICIALS" example:"workbench@city.example.org"`
}

// minSecret is as long as a secret must be that nobody guesses.
const minSecret = 32

// Own returns the addresses that the city sends from, or is written to at.
func (c Intake) Own() []string {
	var own []string
	if from, err := ParseFrom(c.MailFrom); err == nil {
		own = append(own, from.Address)
	}
	if address, err := ParseAddress(c.Officials); err == nil {
		own = append(own, address)
	}
	return own
}

// Enabled reports whether readers may give addresses.
func (c Intake) Enabled() bool { return c.MailFrom != "" }

// Validate returns everything that is wrong with c.
func (c Intake) Validate() []config.Fault {
	var faults config.Faults
	if c.Enabled() {
		_, err := ParseFrom(c.MailFrom)
		faults.Check(err == nil, "MAIL_FROM", wantFrom)
	}
	faults.Check(c.ReadFirst >= 0 && c.ReadFirst <= maxReadFirst, "MAIL_READ_FIRST", "0s to 1h, such as 2m")
	faults.Check(noneOrAddress(c.Officials), "MAIL_OFFICIALS", wantMailbox)
	faults.Check(c.BounceSecret == "" || len(c.BounceSecret) >= minSecret, "MAIL_BOUNCE_SECRET",
		"32 characters or more, such as $(openssl rand -hex 32)")
	return faults
}
