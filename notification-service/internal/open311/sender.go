package open311

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/event"
)

const (
	// idAttribute is the attribute that has the id of the report.
	idAttribute = "cityconnect_id"
	// maxDescription is the longest description that the specification lets pass.
	maxDescription = 4000
	// settled is how long after it was sent a request that is not found did not arrive.
	settled = 2 * time.Minute
	// repeatable is for how long a target that repeats gives the same form the same number,
	// with an hour to spare.
	repeatable = 23 * time.Hour
	// cityPause is before another try when report-service or the database did not answer.
	cityPause = 10 * time.Second
	// keyPause is before another try with keys that do not open.
	keyPause = time.Minute
)

// A Sender sends the deliveries of the ledger that are requests of Open311. It is a
// ledger.Channel.
type Sender struct {
	sides
	publicURL string // of photos; empty for none
}

// sides are what a Sender and a Poller ask.
type sides struct {
	store  *Store
	keys   *event.Keyring
	client *Client
	city   *City
	log    zerolog.Logger
}

// NewSender returns a Sender of the reports that report-service has at reportsURL. client makes
// the requests to targets.
func NewSender(store *Store, keys *event.Keyring, client *http.Client, reportsURL, publicURL string, log zerolog.Logger) *Sender {
	return &Sender{sides{store, keys, &Client{client}, NewCity(reportsURL), log}, strings.TrimRight(publicURL, "/")}
}

// inFlight is how many requests a target has at once: few of these systems are fast.
const inFlight = 2

// schedule has the pauses before each further attempt. The first is long enough that what
// arrived is found.
var schedule = ledger.Schedule{
	settled + 30*time.Second, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour, 10 * time.Hour, 14 * time.Hour, 24 * time.Hour, 24 * time.Hour,
}

// Ledger returns how the dispatcher sends. An attempt asks report-service as well.
func Ledger(concurrency int, timeout, disableAfter time.Duration) ledger.Config {
	return ledger.Config{Concurrency: concurrency, Timeout: timeout, Schedule: schedule, DisableAfter: disableAfter}
}

// Name returns Channel.
func (*Sender) Name() string { return Channel }

// Personal returns false: a target is another system of the city.
func (*Sender) Personal() bool { return false }

// Lanes returns what each target may be sent now.
func (s *Sender) Lanes(ctx context.Context, _ []string) (map[string]ledger.Lane, error) {
	targets, err := s.store.List(ctx)
	if err != nil {
		return nil, err
	}
	lanes := make(map[string]ledger.Lane, len(targets))
	for _, t := range targets {
		lane := ledger.Lane{Hold: ledger.Open, InFlight: inFlight}
		if !t.Enabled {
			lane.Hold = ledger.Held
		}
		err := t.Open(s.keys)
		if err != nil {
			s.log.Error().Err(err).Str("target", t.ID.String()).Msg("keys of an Open311 target do not open, its reports wait")
		}
		lane.Send = func(ctx context.Context, d *ledger.Delivery) ledger.Answer {
			if err != nil {
				return ledger.Answer{Verdict: ledger.Unsent, After: keyPause, Class: "key", Error: "the keys do not open with RECIPIENT_KEY"}
			}
			return s.send(ctx, &t, d)
		}
		lanes[t.ID.String()] = lane
	}
	return lanes, nil
}

// Disable disables a target that has failed for too long.
func (s *Sender) Disable(ctx context.Context, lane string, _ bool) error {
	id, err := uuid.Parse(lane)
	if err != nil {
		return nil // no target has that name
	}
	if err := s.store.Disable(ctx, id); err != nil {
		return err
	}
	s.log.Error().Str("target", lane).Msg("Open311 target is disabled, its reports are held until an operator enables it")
	return nil
}

// A step is one attempt at one report.
type step struct {
	*Sender
	t      *Target
	report uuid.UUID
	r      Request
}

// send does what is left to do for a report, and begins where an attempt before ended:
//
//	waits ──► sent ──► token ──► number ──► report-service has it: delivered
//	  ▲        │  └──────────────► ▲
//	  │        │ no answer         │
//	  └─────── searched ───────────┘
//	 not found   └──► unknown: an operator decides
func (s *Sender) send(ctx context.Context, t *Target, d *ledger.Delivery) ledger.Answer {
	step := step{Sender: s, t: t}
	var err error
	if step.report, err = uuid.Parse(d.MessageID); err != nil {
		return ledger.Answer{Verdict: ledger.Refused, Class: "id", Error: "the delivery names no report"}
	}
	if step.r, err = s.store.Request(ctx, t.ID, step.report); err != nil {
		return later("database", err)
	}
	if step.r.Number == "" {
		if a := step.number(ctx); a.Verdict != ledger.Delivered {
			return a
		}
	}
	switch err := s.city.setNumber(ctx, t, step.report, step.r.Number); {
	case errors.Is(err, errNotOurs):
		return step.leave(ctx)
	case errors.Is(err, errRefused):
		return ledger.Answer{Verdict: ledger.Refused, Class: "number", Error: "report-service does not take the number: it is too long"}
	case err != nil:
		return later("city", err)
	}
	return ledger.Answer{Verdict: ledger.Delivered, Class: "2xx"}
}

// later is the answer of an attempt that failed for a reason of this side.
func later(class string, err error) ledger.Answer {
	return ledger.Answer{Verdict: ledger.Unsent, After: cityPause, Class: class, Error: err.Error()}
}

// number gets the number of the report, and sends it if that was not done.
func (s *step) number(ctx context.Context) ledger.Answer {
	switch {
	case s.r.Unknown:
		return undecided
	case s.r.Token != "":
		return s.askForNumber(ctx)
	case s.r.SentAt == nil:
		return s.file(ctx)
	case s.t.Repeats && s.r.Age < repeatable:
		return s.repeat(ctx)
	default:
		return s.search(ctx)
	}
}

var undecided = ledger.Answer{Verdict: ledger.Refused, Class: "unknown", Error: "it may have arrived, and cannot be searched: an operator decides"}

func (s *step) askForNumber(ctx context.Context) ledger.Answer {
	number, a := s.client.token(ctx, s.t, s.r.Token)
	if a.Verdict == ledger.Refused {
		a.Verdict = ledger.Postponed
	}
	if a.Verdict != ledger.Delivered {
		return a
	}
	if number == "" {
		return ledger.Answer{Verdict: ledger.Postponed, Class: "token", Error: "the target has no number yet", Status: a.Status}
	}
	return s.filed(ctx, answered{Number: number}, a)
}

// filed keeps what the target calls the report. What it answered may not be lost when the
// worker ends.
func (s *step) filed(ctx context.Context, got answered, a ledger.Answer) ledger.Answer {
	s.r.Number, s.r.Token = got.Number, got.Token
	if err := s.store.Filed(context.WithoutCancel(ctx), s.t.ID, s.report, got.Number, got.Token); err != nil {
		return ledger.Answer{Verdict: ledger.Failed, Class: ledger.ClassUncertain, Error: "the number could not be stored"}
	}
	if got.Number == "" {
		return ledger.Answer{Verdict: ledger.Postponed, Class: "token", Error: "the target has no number yet", Status: a.Status}
	}
	return a
}

// file sends the report for the first time, or again after it is certain that it did not
// arrive.
func (s *step) file(ctx context.Context) ledger.Answer {
	form, a := s.form(ctx)
	if form == nil {
		return a
	}
	if err := s.store.Begin(ctx, s.t.ID, s.report, hash(form)); err != nil {
		return later("database", err)
	}
	got, a := s.client.file(ctx, s.t, form)
	switch {
	case a.Verdict == ledger.Delivered:
		return s.filed(ctx, got, a)
	case a.Class == ledger.ClassUncertain: // what was begun stays
		return a
	}
	if err := s.store.NotSent(context.WithoutCancel(ctx), s.t.ID, s.report); err != nil {
		a.Class = ledger.ClassUncertain
	}
	return a
}

// repeat sends the same form once more to a target that answers it with the number it had
// before.
func (s *step) repeat(ctx context.Context) ledger.Answer {
	form, a := s.form(ctx)
	if form == nil {
		return a
	}
	if !bytes.Equal(hash(form), s.r.Hash) { // it has changed: it would be another request
		return s.search(ctx)
	}
	got, a := s.client.file(ctx, s.t, form)
	if a.Verdict == ledger.Delivered {
		return s.filed(ctx, got, a)
	}
	return a
}

// search looks for a report that may have arrived.
func (s *step) search(ctx context.Context) ledger.Answer {
	number, shown, a := s.client.find(ctx, s.t, s.report.String(), *s.r.SentAt)
	switch {
	case number != "":
		return s.filed(ctx, answered{Number: number}, a)
	case a.Verdict != ledger.Delivered && !saysNothing(a):
		return a
	case a.Verdict != ledger.Delivered || !shown:
		if err := s.store.SetUnknown(ctx, s.t.ID, s.report); err != nil {
			return later("database", err)
		}
		return undecided
	case s.r.Age < settled:
		return ledger.Answer{Verdict: ledger.Postponed, After: settled - s.r.Age, Class: "search", Error: "it is not there yet"}
	}
	if err := s.store.NotSent(ctx, s.t.ID, s.report); err != nil {
		return later("database", err)
	}
	return s.file(ctx)
}

// leave ends the delivery of a report that is not the department's.
func (s *step) leave(ctx context.Context) ledger.Answer {
	if err := s.store.Leave(ctx, s.t.ID, s.report); err != nil {
		return later("database", err)
	}
	return ledger.Answer{Verdict: ledger.Unsent, Class: "left"} // it is cancelled
}

// form returns the report as the target gets it, with the words that it has now; nil and an
// answer if it is not to be sent.
func (s *step) form(ctx context.Context) (url.Values, ledger.Answer) {
	r, err := s.city.report(ctx, s.t, s.report)
	code, sent := s.t.Services[r.CategoryID]
	switch {
	case errors.Is(err, errNotOurs), err == nil && (!open(string(r.Status)) || !sent):
		return nil, s.leave(ctx)
	case err != nil:
		return nil, later("city", err)
	}
	if ref := r.ExternalRef; ref != nil && ref.State == s.t.Name { // a restored database has forgotten it
		return nil, s.filed(ctx, answered{Number: ref.Number}, ledger.Answer{Verdict: ledger.Delivered})
	}
	return s.formOf(&r, code), ledger.Answer{}
}

func (s *step) formOf(r *reportapi.ConnectedReport, code string) url.Values {
	description := r.Description
	if description == "" {
		description = r.Title
	}
	if runes := []rune(description); len(runes) > maxDescription {
		description = string(runes[:maxDescription])
	}
	form := url.Values{
		"service_code": {code}, "description": {description},
		"attribute[title]": {r.Title}, "attribute[" + idAttribute + "]": {r.ID.String()},
	}
	if s.t.Key != "" {
		form.Set("api_key", s.t.Key)
	}
	if r.Asset != "" {
		form.Set("attribute[asset]", r.Asset)
	}
	if r.Latitude != nil && r.Longitude != nil {
		form.Set("lat", strconv.FormatFloat(*r.Latitude, 'f', -1, 64))
		form.Set("long", strconv.FormatFloat(*r.Longitude, 'f', -1, 64))
	} else {
		form.Set("address_string", r.Address) // of the place
	}
	if r.Visibility == reportapi.VisibilityPublic && s.publicURL != "" { // nobody reads other photos without signing in
		for _, id := range r.Photos {
			form.Add("media_url", fmt.Sprintf("%s/photos/%s/1024.jpg", s.publicURL, id))
		}
	}
	return form
}

func hash(form url.Values) []byte {
	sum := sha256.Sum256([]byte(form.Encode()))
	return sum[:]
}

// open reports whether a report with that status is to be worked on.
func open(status string) bool { return status == "pending" || status == "in_progress" }
