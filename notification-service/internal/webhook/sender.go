package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/trace"
)

const (
	// maxRead is how much of an answer is read, so that its connection can be
	// used again; keptResponse is how much of it operators see.
	maxRead      = 64 << 10
	keptResponse = 1 << 10
	// readTimeout is for how long. The status alone is the answer of an endpoint: a
	// body that never ends changes nothing about it.
	readTimeout = time.Second
	// keyPause is the pause before another try of an endpoint whose secrets do
	// not open with the configured keys.
	keyPause = time.Minute
)

// EndpointStore is the part of the database that a Sender needs.
type EndpointStore interface {
	// Targets returns those of the endpoints that exist. Earlier secrets are
	// returned only while they still sign.
	Targets(ctx context.Context, ids []uuid.UUID) ([]Endpoint, error)
	// GiveUp disables an enabled endpoint, holds the deliveries that wait for it and
	// writes the audit log, in one transaction. It reports whether it did.
	GiveUp(ctx context.Context, id uuid.UUID, reason Reason) (bool, error)
}

// A Sender sends the deliveries of the ledger that are webhooks. It is a
// ledger.Channel.
type Sender struct {
	store    EndpointStore
	keys     *event.Keyring
	client   *http.Client
	log      zerolog.Logger
	disabled *prometheus.CounterVec
}

// NewSender returns a Sender whose requests client makes.
func NewSender(store EndpointStore, keys *event.Keyring, client *http.Client, reg prometheus.Registerer, log zerolog.Logger) *Sender {
	s := &Sender{store: store, keys: keys, client: client, log: log}
	s.disabled = promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "webhook_endpoints_disabled_total", Help: "Endpoints that were disabled because they failed for too long, or are gone. Their events are held.",
	}, []string{"reason"})
	for _, reason := range []Reason{Failing, Gone} {
		s.disabled.WithLabelValues(string(reason)) // 0 is a value to compare with
	}
	return s
}

// Name returns Channel.
func (s *Sender) Name() string { return Channel }

// Lanes returns what the endpoints of that name may be sent now.
func (s *Sender) Lanes(ctx context.Context, names []string) (map[string]ledger.Lane, error) {
	ids := make([]uuid.UUID, 0, len(names))
	for _, name := range names {
		if id, err := uuid.Parse(name); err == nil {
			ids = append(ids, id)
		}
	}
	endpoints, err := s.store.Targets(ctx, ids)
	if err != nil {
		return nil, err
	}
	lanes := make(map[string]ledger.Lane, len(endpoints))
	for _, e := range endpoints {
		lane := ledger.Lane{Hold: ledger.Open, InFlight: e.InFlight, ByReport: e.Order == OrderReport}
		if e.State == Disabled {
			lane.Hold = ledger.Held
		}
		signers, err := s.signers(e)
		if err != nil {
			s.log.Error().Err(err).Str("endpoint", e.ID.String()).Msg("secrets of a webhook do not open, its deliveries wait")
		}
		lane.Send = func(ctx context.Context, d *ledger.Delivery) ledger.Answer {
			if err != nil {
				return ledger.Answer{Verdict: ledger.Unsent, After: keyPause, Class: "secret", Error: "the signing secret does not open with the configured keys"}
			}
			return s.send(ctx, e.URL, signers, d)
		}
		lanes[e.ID.String()] = lane
	}
	return lanes, nil
}

// signers returns what signs for e, the present secret first.
func (s *Sender) signers(e Endpoint) ([]*standardwebhooks.Webhook, error) {
	sealed := []string{e.Secrets.Sealed}
	if e.Secrets.Previous != nil {
		sealed = append(sealed, *e.Secrets.Previous)
	}
	signers := make([]*standardwebhooks.Webhook, len(sealed))
	for i, text := range sealed {
		secret, err := s.keys.Open(e.ID, text)
		if err != nil {
			return nil, fmt.Errorf("open secret: %w", err)
		}
		if signers[i], err = standardwebhooks.NewWebhook(secret); err != nil {
			return nil, errors.New("read secret: not of the form whsec_<base64>") // the error may quote it
		}
	}
	return signers, nil
}

// send makes one request.
func (s *Sender) send(ctx context.Context, url string, signers []*standardwebhooks.Webhook, d *ledger.Delivery) ledger.Answer {
	now := time.Now() // of the attempt: receivers refuse one that is older than five minutes
	signatures := make([]string, len(signers))
	for i, signer := range signers {
		var err error
		if signatures[i], err = signer.Sign(d.MessageID, now, d.Body); err != nil {
			return ledger.Answer{Verdict: ledger.Unsent, After: keyPause, Class: "secret", Error: "the request could not be signed"}
		}
	}
	reading, cut := context.WithCancel(ctx)
	defer cut()
	req, err := http.NewRequestWithContext(reading, http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil { // it was checked when it was registered; rules change
		return ledger.Answer{Verdict: ledger.Refused, Class: "url", Error: "the address is not a URL"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", UserAgent)
	req.Header.Set(standardwebhooks.HeaderWebhookID, d.MessageID)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	if d.TraceID != "" {
		req.Header.Set(trace.Header, trace.In(d.TraceID))
	}
	// Receivers recognise a repetition by its id. So it is not an error if the
	// receiver closed a kept connection in this moment: net/http sends once more.
	// Being empty, the header is not sent.
	req.Header["Idempotency-Key"] = []string{}

	resp, err := s.client.Do(req)
	if err != nil {
		return ledger.Unanswered(ctx, err)
	}
	defer resp.Body.Close()
	defer time.AfterFunc(readTimeout, cut).Stop()
	a := ledger.AnswerOf(resp)
	a.Response = readSome(resp.Body)
	return a
}

// readSome reads an answer, up to a limit, and returns its beginning as text.
func readSome(body io.Reader) string {
	kept, _ := io.ReadAll(io.LimitReader(body, keptResponse)) // what there is of a broken answer
	if len(kept) == keptResponse {
		_, _ = io.Copy(io.Discard, io.LimitReader(body, maxRead-keptResponse))
	}
	return strings.ReplaceAll(strings.ToValidUTF8(string(kept), "\uFFFD"), "\x00", "\uFFFD") // which text in PostgreSQL cannot have
}

// Personal returns false: an endpoint is another system of the city.
func (*Sender) Personal() bool { return false }

// Disable disables an endpoint that is gone, or has failed for too long.
func (s *Sender) Disable(ctx context.Context, lane string, gone bool) error {
	id, err := uuid.Parse(lane)
	if err != nil {
		return nil // no endpoint of that name exists
	}
	reason := Failing
	if gone {
		reason = Gone
	}
	disabled, err := s.store.GiveUp(ctx, id, reason)
	if err != nil || !disabled {
		return err
	}
	s.disabled.WithLabelValues(string(reason)).Inc()
	s.log.Error().Str("endpoint", lane).Str("reason", string(reason)).
		Msg("webhook endpoint is disabled, its events are held until an operator enables it")
	return nil
}
