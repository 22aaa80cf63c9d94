package email

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	gomail "github.com/wneessen/go-mail"

	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// localPause is the pause after a failure of our own: the database is away, or
// a sealed text does not open with the configured keys.
const localPause = time.Minute

// A DraftStore is the part of the database that a Sender needs.
type DraftStore interface {
	// Draft returns what a delivery is about now. The error is ErrNoContact,
	// or one of ledger.ErrUnwanted, ErrRead, ErrOvertaken and ErrEmpty, if it is not to be sent.
	Draft(ctx context.Context, d *ledger.Delivery) (Draft, error)
	// UnsubscribeToken keeps a sealed token and its hash for the contact and
	// kind, unless there is one, and returns the one that is kept.
	UnsubscribeToken(ctx context.Context, contact uuid.UUID, kind string, hash []byte, sealed string) (string, error)
	// CancelDelivery cancels a delivery that waits, for the reason.
	CancelDelivery(ctx context.Context, channel string, delivery int64, reason string) error
	// MailRefused notes what a server said of the address. In a burst of such
	// answers it changes nothing, and takes back what the ones before have changed.
	MailRefused(ctx context.Context, b Bounce) (burst bool, err error)
	// TakeBackBurst takes back what followed from a burst, for what was under way.
	TakeBackBurst(ctx context.Context) error
}

// A Sender sends the deliveries of the ledger that are mails. It is a
// ledger.Channel.
type Sender struct {
	config *Config
	store  DraftStore
	keys   *Keys
	relay  *Relay
	log    zerolog.Logger

	resting            atomic.Int64 // until when nothing is claimed, in Unix nanoseconds
	cancelled, refused *crowd.Counter
	policy             crowd.Gate // of the log
}

// NewSender returns a Sender whose mails relay takes.
func NewSender(cfg *Config, store DraftStore, keys *Keys, relay *Relay, reg prometheus.Registerer, log zerolog.Logger) *Sender {
	return &Sender{
		config: cfg, store: store, keys: keys, relay: relay, log: log,
		cancelled: crowd.Counted(reg, "mails_cancelled_total", "reason", maps.Values(reasons),
			"Mails cancelled before sending, by reason; counted once those of 20 people or more are."),
		refused: crowd.Counted(reg, "mails_refused_total", "class", slices.Values([]string{classAddress, classPolicy, classUnclear, classRefused, ledger.ClassUncertain}),
			"Mails that the mail server refused, counted once those of 20 people or more are. Those of the classes policy and unclear are retried, and are for operators to look at."),
	}
}

// reasons are the words for why a mail is cancelled.
var reasons = map[error]string{ErrNoContact: "no_contact", ledger.ErrUnwanted: "unwanted", ledger.ErrRead: "read", ledger.ErrOvertaken: "overtaken", ledger.ErrEmpty: "empty"}

// Name returns Channel.
func (s *Sender) Name() string { return Channel }

// Personal returns true: a mail host of one person names them.
func (*Sender) Personal() bool { return true }

// Lanes lets every lane send. It fails while the mail server does not let us in,
// so that nothing is claimed: an outage of ours costs no mail an attempt, and
// the database nothing.
func (s *Sender) Lanes(ctx context.Context, names []string) (map[string]ledger.Lane, error) {
	if until := s.resting.Load(); until > 0 {
		if err := s.store.TakeBackBurst(ctx); err != nil {
			return nil, err
		}
		if time.Now().UnixNano() < until {
			return nil, errors.New("mails rest because many addresses were refused at once")
		}
		s.resting.CompareAndSwap(until, 0)
	}
	if err := s.relay.Ready(ctx); err != nil {
		return nil, errors.New(describe(err))
	}
	lanes := make(map[string]ledger.Lane, len(names))
	for _, name := range names {
		lanes[name] = ledger.Lane{Hold: ledger.Open, InFlight: perLane, Send: s.Send}
	}
	return lanes, nil
}

// Disable does nothing: a mail host is never given up.
func (s *Sender) Disable(context.Context, string, bool) error { return nil }

// Send writes the mail that a delivery is about now, and hands it over.
func (s *Sender) Send(ctx context.Context, d *ledger.Delivery) ledger.Answer {
	draft, err := s.draft(ctx, d)
	for reason, word := range reasons {
		if errors.Is(err, reason) {
			return s.cancel(ctx, d, word)
		}
	}
	if err != nil {
		return s.unsent(ctx, "database", "reading what a mail is about failed, will retry", err)
	}
	zone, err := time.LoadLocation(draft.Contact.Zone)
	if err != nil { // it was checked when it was given; lists of zones change
		zone = time.UTC
	}
	if d.Kind != Code && d.Kind != Proof && d.Kind != Digest { // the reader waits for the one, and has chosen the hour of the other
		if quiet := draft.Contact.Quiet.Until(draft.Now.In(zone)); quiet > 0 {
			return ledger.Answer{Verdict: ledger.Unsent, After: quiet, Class: "quiet_hours"}
		}
	}
	msg, err := s.compose(ctx, d, draft, zone)
	if err != nil {
		return s.unsent(ctx, "compose", "writing a mail failed, will retry", err)
	}
	err = s.relay.Deliver(ctx, msg)
	answer, hard := answerOf(ctx, err, d)
	if hard || answer.Class == classUnclear {
		// A contact with a hard bounce may not stay active: it would be written to again.
		answer = s.note(ctx, d, answer, hard)
	}
	switch {
	case answer.Class == classRelay:
		s.log.Warn().Str("error", describe(err)).Msg("the mail server does not take mails, will retry")
	case answer.Class == classPolicy, answer.Class == classUnclear:
		s.logPolicy(d, answer)
		if d.Retries == 0 {
			s.refused.Add(d.Target, answer.Class)
		}
	}
	if answer.Verdict == ledger.Refused {
		s.refused.Add(d.Target, answer.Class)
		if draft.Notice != nil {
			s.log.Error().Str("answer", answer.Error).Str("to", d.Target).
				Msg("a notice to the city's own people is refused, check MAIL_OFFICIALS and MAIL_OPERATORS")
		}
	}
	return answer
}

// note notes what the server said of the address, and returns the answer that
// follows from it.
func (s *Sender) note(ctx context.Context, d *ledger.Delivery, answer ledger.Answer, hard bool) ledger.Answer {
	burst, err := s.store.MailRefused(ctx, Bounce{Delivery: d.ID, Code: codeOf(answer), Hard: hard})
	switch {
	case err != nil:
		return s.unsent(ctx, "database", "noting a bounce failed, will retry", err)
	case burst:
		answer.Verdict, answer.After = ledger.Failed, BurstPause
		if now := time.Now(); s.resting.Swap(now.Add(BurstPause).UnixNano()) < now.UnixNano() {
			s.log.Error().Msg("the mail server refuses many addresses at once, circuit opened: no address is given up, and mails rest for ten minutes; check the mail server")
		}
	}
	return answer
}

// logPolicy logs that a mail is refused by policy: a code at once, because its reader
// has asked for it and waits, and others once those of many people are. The log does
// not say which host refuses them.
func (s *Sender) logPolicy(d *ledger.Delivery, answer ledger.Answer) {
	n := 1
	if d.Kind != Code && d.Kind != Proof {
		n = s.policy.Add(answer.Error, d.Target)
	}
	if n > 0 {
		s.log.Error().Str("answer", answer.Error).Int("mails", n).
			Msg("mails are refused by policy, will retry: check the mail server's login, SPF, DKIM, DMARC, lists of blocked addresses and quotas")
	}
}

// draft returns what d is about now.
func (s *Sender) draft(ctx context.Context, d *ledger.Delivery) (Draft, error) {
	if (d.Target == Officials || d.Target == Operators) && s.config.mailbox(d.Target) == "" {
		return Draft{}, ErrNoContact // it was named when the notice was written
	}
	return s.store.Draft(ctx, d)
}

// codeOf returns the code of a refusal that is kept.
func codeOf(a ledger.Answer) string {
	if code := statusPattern.FindString(a.Error); code != "" {
		return code
	}
	return fmt.Sprint(a.Status)
}

// cancel cancels a delivery. The ledger changes nothing about cancelled deliveries.
func (s *Sender) cancel(ctx context.Context, d *ledger.Delivery, reason string) ledger.Answer {
	if err := s.store.CancelDelivery(ctx, Channel, d.ID, reason); err != nil {
		return s.unsent(ctx, "database", "cancelling a mail failed, will retry", err)
	}
	s.cancelled.Add(d.Target, reason)
	return ledger.Answer{Verdict: ledger.Unsent, Class: reason}
}

func (s *Sender) unsent(ctx context.Context, class, what string, err error) ledger.Answer {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ledger.Answer{Verdict: ledger.Unsent, Class: classStopped}
	}
	s.log.Warn().Str("error", pgpool.LogText(err)).Msg(what)
	return ledger.Answer{Verdict: ledger.Unsent, After: localPause, Class: class, Error: "a failure of our own"}
}

// compose writes the mail.
func (s *Sender) compose(ctx context.Context, d *ledger.Delivery, draft Draft, zone *time.Location) (*gomail.Msg, error) {
	t := mailText{
		Language: draft.Contact.Language, PublicURL: s.config.PublicURL, City: s.config.From.Name, Links: s.config.CityLinks, Zone: zone,
		Total: draft.Total, WithheldItems: draft.Withheld, Called: draft.Called,
	}
	if s.config.Appearance != nil {
		t.Appearance = s.config.Appearance(ctx)
	}
	address := s.config.mailbox(d.Target)
	var err error
	if draft.Notice == nil && draft.Firm == nil {
		if address, err = s.keys.Open(draft.Contact.ID, draft.Contact.Address); err != nil {
			return nil, err
		}
	}
	switch d.Kind {
	case Overdue, EndpointDisabled, EndpointFailing, TargetDiffers:
		t.Language = wording.Language(s.config.NoticesLanguage)
		err = t.addNotice(draft.Notice)
	case FirmAsked, FirmReminded, FirmEnded:
		t.Language = wording.Language(s.config.NoticesLanguage)
		address, err = s.addFirm(&t, draft.Firm)
	case Code:
		t.Code, err = s.openCode(d, draft)
	case Proof:
		var token string
		if token, err = s.openCode(d, draft); err == nil {
			err = t.addProof(token)
		}
	default:
		err = s.addItems(ctx, &t, d, draft)
	}
	if err != nil {
		return nil, err
	}
	written, err := write(layoutOf(d.Kind, draft.Called), &t)
	if err != nil {
		return nil, err
	}

	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.config.From)
	if err := msg.To(address); err != nil {
		return nil, errors.New("the address is no longer valid") // the error quotes it
	}
	name := s.keys.DeliveryToken(d.ID)
	if s.config.MailBounceDomain != "" {
		if err := msg.EnvelopeFrom(bounceUser + name + "@" + s.config.MailBounceDomain); err != nil {
			return nil, fmt.Errorf("address for bounces: %w", err)
		}
	}
	msg.SetMessageIDWithValue(name + "@" + host(s.config.From.Address)) // the same at each try
	msg.SetDateWithValue(draft.Now)
	msg.Subject(written.Subject)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic answer from readers on holiday
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")  // the same for Exchange
	msg.SetGenHeader("Content-Language", string(t.Language))
	if t.Unsubscribe != "" {
		// One click is for https alone (RFC 8058 section 3.1). On a developer's
		// machine the link stays.
		if msg.SetListUnsubscribeOneClick(t.Unsubscribe) != nil {
			msg.SetListUnsubscribe(t.Unsubscribe)
		}
	}
	msg.SetBodyString(gomail.TypeTextPlain, written.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, written.HTML)
	return msg, nil
}

// addFirm adds what a firm is asked to repair, and returns its address.
func (s *Sender) addFirm(t *mailText, f *event.FirmNotice) (address string, err error) {
	token := ""
	if f.Token != "" {
		if token, err = s.keys.Open(f.JobID, f.Token); err != nil {
			return "", err
		}
	}
	if err := t.addFirm(f, token); err != nil {
		return "", err
	}
	return s.keys.Open(f.JobID, f.Mailbox)
}

// openCode returns the code, or the token, that proves an address.
func (s *Sender) openCode(d *ledger.Delivery, draft Draft) (string, error) {
	var body SealedCode
	if err := json.Unmarshal(d.Body, &body); err != nil {
		return "", fmt.Errorf("read code: %w", err)
	}
	return s.keys.Open(draft.Contact.ID, body.Code)
}

// addItems adds notifications, and how to have no more mails about such.
func (s *Sender) addItems(ctx context.Context, t *mailText, d *ledger.Delivery, draft Draft) (err error) {
	for _, item := range draft.Items {
		if err := t.add(item); err != nil {
			return err
		}
	}
	t.Unsubscribe, err = s.unsubscribeURL(ctx, d.Kind, draft)
	return err
}

// unsubscribeURL returns the address that ends mails of this kind. Each contact
// has one token a kind, which is made with the first mail.
func (s *Sender) unsubscribeURL(ctx context.Context, kind string, draft Draft) (string, error) {
	sealed := draft.Unsubscribe
	if sealed == "" {
		token := NewToken()
		var err error
		sealed, err = s.store.UnsubscribeToken(ctx, draft.Contact.ID, kind, TokenHash(token), s.keys.SealToken(draft.Contact.ID, token))
		if err != nil {
			return "", err
		}
	}
	token, err := s.keys.Open(draft.Contact.ID, sealed)
	if err != nil {
		return "", err
	}
	return s.config.PublicURL + "/u/" + token, nil
}
