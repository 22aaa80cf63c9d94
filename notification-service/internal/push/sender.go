package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// recordSize is the length that every push is padded to, so that it reveals
	// nothing; no push service refuses it. They take 4,096 bytes (RFC 8030 section
	// 7.2), of which some count more than others.
	recordSize = 3072
	// maxTitle and maxBody are how many characters are shown of what people wrote.
	// Both together fit into a record, whatever the letters are.
	maxTitle, maxBody = 120, 300
	// localPause is the pause after a failure of our own: the database is away, or
	// a sealed text does not open with the configured keys.
	localPause = time.Minute
	// maxRead is how much of an answer is read, so that its connection can be used
	// again.
	maxRead = 4 << 10
)

// Classes of answers, for metrics and the operators' log.
const (
	classVAPID   = "vapid"   // the push service does not take our key
	classRefused = "refused" // nor this push, permanently
	classStopped = "stopped" // this process ends
)

// A Store is the part of the database that a Sender needs.
type Store interface {
	// Draft returns what a delivery is about now. The error is ErrNoDevice, or
	// one of ledger.ErrUnwanted, ErrRead, ErrOvertaken and ErrEmpty, if it is not to be sent.
	Draft(ctx context.Context, d *ledger.Delivery) (Draft, error)
	// Used notes that something was sent to a device.
	Used(ctx context.Context, device uuid.UUID) error
	// Drop removes a device that its push service no longer knows.
	Drop(ctx context.Context, device uuid.UUID) error
	// CancelDelivery cancels a delivery that waits, for the reason.
	CancelDelivery(ctx context.Context, channel string, delivery int64, reason string) error
}

// A Sender sends the deliveries of the ledger that are pushes. It is a
// ledger.Channel.
type Sender struct {
	config *Config
	store  Store
	keys   *Keys
	client *http.Client
	log    zerolog.Logger

	cancelled, refused *crowd.Counter
	refusals           crowd.Gate // of the log
}

// NewSender returns a Sender whose requests client makes.
func NewSender(cfg *Config, store Store, keys *Keys, client *http.Client, reg prometheus.Registerer, log zerolog.Logger) *Sender {
	return &Sender{
		config: cfg, store: store, keys: keys, client: client, log: log,
		cancelled: crowd.Counted(reg, "pushes_cancelled_total", "reason", maps.Values(reasons),
			"Pushes cancelled before sending, by reason; counted once those to 20 devices or more are."),
		refused: crowd.Counted(reg, "pushes_refused_total", "class", slices.Values([]string{classVAPID, classRefused}),
			"Pushes that a push service refused, counted once those to 20 devices or more are. Those of class vapid are for operators to look at: it does not take the city's key."),
	}
}

// errGone says that a push service no longer knows a device.
var errGone = errors.New("the push service no longer knows the device")

// reasons are the words for why a push is cancelled.
var reasons = map[error]string{
	ErrNoDevice: "no_device", errGone: "gone", errHost: "host",
	ledger.ErrUnwanted: "unwanted", ledger.ErrRead: "read", ledger.ErrOvertaken: "overtaken", ledger.ErrEmpty: "empty",
}

// Name returns Channel.
func (s *Sender) Name() string { return Channel }

// Personal returns true: a device is a person's.
func (*Sender) Personal() bool { return true }

// Lanes lets every lane send.
func (s *Sender) Lanes(_ context.Context, names []string) (map[string]ledger.Lane, error) {
	lanes := make(map[string]ledger.Lane, len(names))
	for _, name := range names {
		lanes[name] = ledger.Lane{Hold: ledger.Open, InFlight: perLane, Send: s.Send}
	}
	return lanes, nil
}

// Disable does nothing: a push service is never given up.
func (s *Sender) Disable(context.Context, string, bool) error { return nil }

// Send writes the push that a delivery is about now, and hands it over.
func (s *Sender) Send(ctx context.Context, d *ledger.Delivery) ledger.Answer {
	draft, err := s.store.Draft(ctx, d)
	if err != nil {
		return s.unsent(ctx, d, err)
	}
	if zone, err := time.LoadLocation(draft.Zone); err == nil { // it was checked when it was given; lists of zones change
		if quiet := draft.Quiet.Until(draft.Now.In(zone)); quiet > 0 {
			return ledger.Answer{Verdict: ledger.Unsent, After: quiet, Class: "quiet_hours"}
		}
	}
	subscription, err := s.keys.open(&draft.Device)
	if err != nil {
		return s.unsent(ctx, d, err)
	}
	if _, err := s.config.CheckEndpoint(subscription.Endpoint); err != nil {
		return s.unsent(ctx, d, errHost)
	}
	text, topic, err := s.compose(&draft, d.Kind)
	if err != nil {
		return s.unsent(ctx, d, err)
	}
	res, err := webpush.SendNotificationWithContext(ctx, text, subscription, &webpush.Options{
		HTTPClient: s.client, RecordSize: recordSize, Topic: topic, TTL: int(d.Remaining.Seconds()), Urgency: webpush.UrgencyNormal,
		Subscriber:     strings.TrimPrefix(s.config.Contact, "mailto:"), // which the library puts before it
		VAPIDPublicKey: s.config.PublicKey(), VAPIDPrivateKey: strings.TrimRight(s.config.VAPIDKey, "="),
	})
	if err != nil {
		return s.failed(ctx, d, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxRead)) // nobody reads more of it than its status
	_ = res.Body.Close()
	answer := answerOf(res)
	switch {
	case answer.Verdict == ledger.Gone:
		if err := s.store.Drop(ctx, draft.Device.ID); err != nil {
			return s.unsent(ctx, d, err)
		}
		return s.unsent(ctx, d, errGone)
	case answer.Class == classVAPID:
		s.refused.Add(d.Target, classVAPID)
		s.logRefusal(d, answer, "a push service does not take our signature, check PUSH_VAPID_KEY, PUSH_CONTACT and the clock; devices of an earlier key must be added again")
	case answer.Verdict == ledger.Refused:
		s.refused.Add(d.Target, classRefused)
		s.logRefusal(d, answer, "a push service refuses pushes, they are given up")
	case answer.Verdict == ledger.Delivered:
		if used := draft.Device.LastUsedAt; used == nil || draft.Now.Sub(*used) > time.Hour {
			if err := s.store.Used(ctx, draft.Device.ID); err != nil {
				s.log.Warn().Str("error", pgpool.LogText(err)).Msg("updating last use of a device failed, the next push will retry")
			}
		}
	}
	return answer
}

// logRefusal logs what a push service answers, once it has answered it to the
// devices of many.
func (s *Sender) logRefusal(d *ledger.Delivery, answer ledger.Answer, what string) {
	if n := s.refusals.Add(d.Lane+" "+strconv.Itoa(answer.Status), d.Target); n > 0 {
		s.log.Error().Str("push_service", d.Lane).Int("status", answer.Status).Int("pushes", n).Msg(what)
	}
}

// answerOf returns the answer to a response (RFC 8030 section 5, RFC 8292 section 4.2). Beyond
// what every status of HTTP says, 404 and 410 say that the device is to be removed, and 401
// and 403 that our key is not taken, and operators have to act.
//
// A key that is refused counts nothing against the push service: the address of a
// device that subscribed with another key would otherwise stop everybody's pushes.
func answerOf(res *http.Response) ledger.Answer {
	a := ledger.AnswerOf(res)
	switch {
	case res.StatusCode == http.StatusNotFound:
		a.Verdict = ledger.Gone
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		a.Verdict, a.Class = ledger.Postponed, classVAPID
	case a.Verdict == ledger.Refused:
		a.Class = classRefused
	}
	return a
}

// failed returns the answer to a request that got none. No error is passed on: it
// quotes the address.
func (s *Sender) failed(ctx context.Context, d *ledger.Delivery, err error) ledger.Answer {
	if _, sent := errors.AsType[*url.Error](err); !sent {
		return s.unsent(ctx, d, errors.New("encrypt a push"))
	}
	a := ledger.Unanswered(ctx, err)
	if a.Class == ledger.ClassAddressRefused {
		s.refused.Add(d.Target, classRefused)
	}
	return a
}

// unsent cancels a delivery that is no longer wanted, and leaves it as it is
// after a failure of our own.
func (s *Sender) unsent(ctx context.Context, d *ledger.Delivery, err error) ledger.Answer {
	for reason, word := range reasons {
		if !errors.Is(err, reason) {
			continue
		}
		if err = s.store.CancelDelivery(ctx, Channel, d.ID, word); err == nil {
			s.cancelled.Add(d.Target, word)
			return ledger.Answer{Verdict: ledger.Unsent, Class: word}
		}
		break
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ledger.Answer{Verdict: ledger.Unsent, Class: classStopped}
	}
	s.log.Warn().Str("error", pgpool.LogText(err)).Msg("preparing a push failed, will retry")
	return ledger.Answer{Verdict: ledger.Unsent, After: localPause, Class: "own", Error: "a failure of our own"}
}

// A message is what the page's service worker is sent. It shows it as it is.
type message struct {
	Title string           `json:"title"`
	Body  string           `json:"body"`
	Lang  wording.Language `json:"lang"`
	Tag   string           `json:"tag"` // what the same tag has is replaced
	URL   string           `json:"url"` // a path of the page
}

// compose writes the push about a notification.
func (s *Sender) compose(draft *Draft, kind string) (text []byte, topic string, err error) {
	var about notification.Data
	if err := json.Unmarshal(draft.Item.Data, &about); err != nil {
		return nil, "", fmt.Errorf("read notification: %w", err)
	}
	m := message{Lang: draft.Device.Language, Tag: s.keys.Topic(draft.Device.ID, about.ReportID, kind), URL: "/mine"}
	title, body, err := draft.Device.Language.Brief(draft.Item)
	if err != nil {
		return nil, "", err
	}
	m.Title, m.Body = cut(title, maxTitle), cut(body, maxBody)
	if !draft.Item.Withheld {
		m.URL = "/reports/" + about.ReportID.String()
	}
	if text, err = json.Marshal(m); err != nil {
		return nil, "", fmt.Errorf("encode push: %w", err)
	}
	return text, m.Tag, nil
}

// cut returns at most so many characters of a text.
func cut(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
