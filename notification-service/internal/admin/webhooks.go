package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// bindTimeout is how long a registration waits for the queue. It leaves the
// database the rest of service.DefaultTimeout.
const bindTimeout = 10 * time.Second

// Webhooks are the endpoints that operators register, and what they were sent.
type Webhooks struct {
	Endpoints  *postgres.Endpoints
	Deliveries *postgres.Deliveries
	Queue      *topology.Checker // binds the queue before the first endpoint is there: events from then on are for it
	Rules      webhook.Rules     // for the addresses that may be registered
	Keys       *event.Keyring    // seal secrets
}

// Operations are those on webhooks.
func (a Webhooks) Operations() openapi.Operations {
	return openapi.Operations{
		"listWebhooks":        {Handler: a.list, Timeout: service.DefaultTimeout},
		"createWebhook":       {Handler: service.Decoded(a.create), Timeout: service.DefaultTimeout},
		"readWebhook":         {Handler: a.read, Timeout: service.DefaultTimeout},
		"changeWebhook":       {Handler: service.Decoded(a.change), Timeout: service.DefaultTimeout},
		"deleteWebhook":       {Handler: a.delete, Timeout: service.DefaultTimeout},
		"rotateWebhookSecret": {Handler: service.Decoded(a.rotate), Timeout: service.DefaultTimeout},
		"enableWebhook":       {Handler: service.Decoded(a.enable), Timeout: service.DefaultTimeout},
		"disableWebhook":      {Handler: a.disable, Timeout: service.DefaultTimeout},
		"testWebhook":         {Handler: a.test, Timeout: service.DefaultTimeout},
		"recoverWebhook":      {Handler: service.Decoded(a.recover), Timeout: service.DefaultTimeout},
		"listDeliveries":      {Handler: a.listDeliveries, Timeout: service.DefaultTimeout},
		"webhookHistory":      {Handler: a.history, Timeout: service.DefaultTimeout},
		"findDeliveries":      {Handler: a.findDeliveries, Timeout: service.DefaultTimeout},
		"readDelivery":        {Handler: a.readDelivery, Timeout: service.DefaultTimeout},
		"resendDelivery":      {Handler: a.resend, Timeout: service.DefaultTimeout},
	}
}

// Problems are the kinds of failures that only these operations have, as the client
// sees them.
var Problems = map[fault.Kind]service.ProblemType{
	webhook.Stale: {Status: http.StatusPreconditionFailed, Name: "stale-version", Title: "Somebody else has changed it"}, // of dead letters' notes and of the appearance, too,
}

// ifMatch returns the version in If-Match, which the document let pass; 0 is
// any.
func ifMatch(r *http.Request) int64 {
	return service.Number(strings.Trim(r.Header.Get("If-Match"), `"*`))
}

// list handles GET /admin/webhooks.
func (a Webhooks) list(w http.ResponseWriter, r *http.Request) error {
	limit := int(service.Number(r.URL.Query().Get("limit")))
	endpoints, err := a.Endpoints.List(r.Context(), openapi.QueryID(r, "cursor"), limit+1)
	if err != nil {
		return err
	}
	endpoints, next := cut(endpoints, limit, func(last webhook.Endpoint) string { return last.ID.String() })
	ids := service.Each(endpoints, func(e webhook.Endpoint) uuid.UUID { return e.ID })
	summaries, err := a.Endpoints.Summaries(r.Context(), ids)
	items := service.Each(endpoints, func(e webhook.Endpoint) notificationapi.Webhook { return webhookOf(e, summaries[e.ID]) })
	return service.Answer(w, http.StatusOK, notificationapi.WebhookPage{Items: items, NextCursor: next}, err)
}

// create handles POST /admin/webhooks.
func (a Webhooks) create(w http.ResponseWriter, r *http.Request, request notificationapi.NewWebhook) error {
	reg := webhook.Registration{
		URL: webhook.CleanURL(request.URL), Description: request.Description,
		Filter: webhook.Filter{Types: request.EventTypes, Categories: request.CategoryIds},
		Scopes: service.Each(request.Scopes, func(s notificationapi.NewWebhookScopes) string { return string(s) }),
		Order:  webhook.Order(request.Order), InFlight: int(request.InFlight),
	}
	if reg.Order == "" {
		reg.Order = webhook.OrderReport
	}
	if reg.InFlight == 0 {
		reg.InFlight = webhook.DefaultInFlight
	}
	var err error
	if reg.Filter.Area, err = areaOf(request.Area); err != nil {
		return err
	}
	if err := a.Rules.Check(reg, ""); err != nil {
		return err
	}
	if err := a.bindQueue(r.Context()); err != nil {
		return err
	}
	e, secret := webhook.NewEndpoint(reg, a.Keys)
	if err := a.Endpoints.Create(r.Context(), auth.Must(r).ID, &e); err != nil {
		return err
	}
	setETag(w, e.Version)
	w.Header().Set("Location", "/admin/webhooks/"+e.ID.String())
	return service.Encode(w, http.StatusCreated, notificationapi.WebhookCreated{Webhook: webhookOf(e, webhook.Summary{}), Secret: secret})
}

func (a Webhooks) bindQueue(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	if err := a.Queue.Demand(ctx, webhook.Queue); err != nil {
		return &fault.Error{Kind: fault.Unavailable, Msg: "the broker could not bind the queue of webhooks, and nothing would be sent to the endpoint; it was not registered", Err: err}
	}
	return nil
}

// areaOf reads the area of a request; empty is everywhere.
func areaOf(numbers []float64) (*webhook.Area, error) {
	switch len(numbers) {
	case 0:
		return nil, nil
	case len(webhook.Area{}):
		return (*webhook.Area)(numbers), nil
	}
	return nil, fault.NewInvalid("/area", "must be four numbers, west, south, east, north, or none")
}

func setETag(w http.ResponseWriter, version int64) {
	w.Header().Set("ETag", `"`+strconv.FormatInt(version, 10)+`"`)
}

// answer answers with an endpoint and its summary, unless err says that there is none.
func (a Webhooks) answer(w http.ResponseWriter, r *http.Request, e webhook.Endpoint, err error) error {
	if err != nil {
		return err
	}
	summaries, err := a.Endpoints.Summaries(r.Context(), []uuid.UUID{e.ID})
	if err != nil {
		return err
	}
	setETag(w, e.Version)
	return service.Encode(w, http.StatusOK, webhookOf(e, summaries[e.ID]))
}

// read handles GET /admin/webhooks/{id}.
func (a Webhooks) read(w http.ResponseWriter, r *http.Request) error {
	e, err := a.Endpoints.Get(r.Context(), openapi.PathID(r, "id"))
	return a.answer(w, r, e, err)
}

// change handles PATCH /admin/webhooks/{id}.
func (a Webhooks) change(w http.ResponseWriter, r *http.Request, request notificationapi.WebhookChange) error {
	if request.URL != nil {
		*request.URL = webhook.CleanURL(*request.URL)
	}
	change := webhook.Change{URL: request.URL, Description: request.Description, InFlight: intOf(request.InFlight)}
	if request.EventTypes != nil {
		change.Types = &request.EventTypes
	}
	if request.CategoryIds != nil {
		change.Categories = &request.CategoryIds
	}
	if request.Order != "" {
		change.Order = new(webhook.Order(request.Order))
	}
	if request.Area != nil {
		area, err := areaOf(request.Area)
		if err != nil {
			return err
		}
		change.Area = &area
	}
	e, err := a.Endpoints.Change(r.Context(), auth.Must(r).ID, openapi.PathID(r, "id"), ifMatch(r), change, a.Rules)
	return a.answer(w, r, e, err)
}

// delete handles DELETE /admin/webhooks/{id}.
func (a Webhooks) delete(w http.ResponseWriter, r *http.Request) error {
	return service.Done(w, a.Endpoints.Delete(r.Context(), auth.Must(r).ID, openapi.PathID(r, "id"), ifMatch(r)))
}

// rotate handles POST /admin/webhooks/{id}/rotate.
func (a Webhooks) rotate(w http.ResponseWriter, r *http.Request, request notificationapi.WebhookRotation) error {
	keep := webhook.RotationPeriod
	if request.KeepOldForS != nil {
		keep = time.Duration(*request.KeepOldForS) * time.Second
	}
	id, secret := openapi.PathID(r, "id"), webhook.NewSecret()
	e, err := a.Endpoints.Rotate(r.Context(), auth.Must(r).ID, id, webhook.SealSecret(a.Keys, id, secret), keep)
	if err != nil {
		return err
	}
	setETag(w, e.Version)
	return service.Encode(w, http.StatusOK, notificationapi.WebhookSecret{Secret: secret, PreviousSecretUntil: service.OrZero(e.Secrets.PreviousUntil)})
}

// enable handles POST /admin/webhooks/{id}/enable.
func (a Webhooks) enable(w http.ResponseWriter, r *http.Request, request notificationapi.WebhookEnabling) error {
	e, err := a.Endpoints.Enable(r.Context(), auth.Must(r).ID, openapi.PathID(r, "id"), request.Held == "send")
	return a.answer(w, r, e, err)
}

// disable handles POST /admin/webhooks/{id}/disable.
func (a Webhooks) disable(w http.ResponseWriter, r *http.Request) error {
	e, err := a.Endpoints.Disable(r.Context(), auth.Must(r).ID, openapi.PathID(r, "id"))
	return a.answer(w, r, e, err)
}

// test handles POST /admin/webhooks/{id}/test.
func (a Webhooks) test(w http.ResponseWriter, r *http.Request) error {
	e, err := webhook.NewTest()
	if err != nil {
		return err
	}
	record, err := a.Deliveries.AddTest(r.Context(), auth.Must(r).ID, openapi.PathID(r, "id"), e)
	if err != nil {
		return err
	}
	w.Header().Set("Location", fmt.Sprintf("/admin/deliveries/%d", record.ID))
	return service.Encode(w, http.StatusAccepted, deliveryOf(record))
}

// recover handles POST /admin/webhooks/{id}/recover.
func (a Webhooks) recover(w http.ResponseWriter, r *http.Request, request notificationapi.WebhookRecovery) error {
	if !request.Since.Before(request.Until) {
		return fault.NewInvalid("/until", "must be after since")
	}
	recovery, err := a.Deliveries.Recover(r.Context(), auth.Must(r).ID, openapi.PathID(r, "id"), webhook.Window{Since: request.Since, Until: request.Until}, request.DryRun)
	return service.Answer(w, http.StatusOK, notificationapi.WebhookRecovered{Resent: recovery.Resent, Created: recovery.Created}, err)
}

// listDeliveries handles GET /admin/webhooks/{id}/deliveries.
func (a Webhooks) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	limit, before := page(r)
	e, err := a.Endpoints.Get(r.Context(), openapi.PathID(r, "id"))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	records, err := a.Deliveries.List(r.Context(), e.ID, webhook.RecordQuery{
		State: webhook.DeliveryState(q.Get("state")), Type: q.Get("type"), Before: before, Limit: limit + 1,
	})
	records, next := cut(records, limit, func(last webhook.Record) string { return strconv.FormatInt(last.ID, 10) })
	return service.Answer(w, http.StatusOK, notificationapi.DeliveryPage{Items: service.Each(records, deliveryOf), NextCursor: next}, err)
}

// spans are how far back a history may reach, and in which steps: the last hour by
// minutes, and the last week by hours.
var spans = map[string]struct{ span, step time.Duration }{
	"hour": {time.Hour, time.Minute},
	"week": {7 * 24 * time.Hour, time.Hour},
}

// history handles GET /admin/webhooks/{id}/history.
func (a Webhooks) history(w http.ResponseWriter, r *http.Request) error {
	e, err := a.Endpoints.Get(r.Context(), openapi.PathID(r, "id"))
	if err != nil {
		return err
	}
	of := spans[r.URL.Query().Get("span")]
	// The present step is the last one.
	since := time.Now().UTC().Truncate(of.step).Add(of.step - of.span)
	past, err := a.Deliveries.Attempts(r.Context(), e.ID, since, of.step)
	return service.Answer(w, http.StatusOK, pastOf(past), err)
}

// errNothingToFind refuses a search for everything.
var errNothingToFind = fault.NewInvalid("message_id", "must be given, or report_id")

// findDeliveries handles GET /admin/deliveries.
func (a Webhooks) findDeliveries(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	report := openapi.QueryID(r, "report_id")
	if report == uuid.Nil && q.Get("message_id") == "" {
		return errNothingToFind
	}
	limit, _ := page(r)
	records, err := a.Deliveries.Find(r.Context(), q.Get("message_id"), report, limit)
	return service.Answer(w, http.StatusOK, notificationapi.DeliveryPage{Items: service.Each(records, deliveryOf)}, err)
}

// readDelivery handles GET /admin/deliveries/{id}.
func (a Webhooks) readDelivery(w http.ResponseWriter, r *http.Request) error {
	id := service.Number(r.PathValue("id"))
	record, attempts, err := a.Deliveries.Get(r.Context(), id)
	if err != nil {
		return err
	}
	answer := deliveryOf(record)
	answer.Body = string(record.Body)
	answer.Attempts = service.Each(attempts, func(n webhook.AttemptRecord) notificationapi.DeliveryAttempt { return webhookAttemptOf(record, n) })
	return service.Encode(w, http.StatusOK, answer)
}

// resend handles POST /admin/deliveries/{id}/resend.
func (a Webhooks) resend(w http.ResponseWriter, r *http.Request) error {
	id := service.Number(r.PathValue("id"))
	record, err := a.Deliveries.Resend(r.Context(), auth.Must(r).ID, id)
	return service.Answer(w, http.StatusOK, deliveryOf(record), err)
}

func webhookOf(e webhook.Endpoint, s webhook.Summary) notificationapi.Webhook {
	view := notificationapi.Webhook{
		ID: e.ID, URL: e.URL, Description: e.Description,
		EventTypes: append([]string{}, e.Filter.Types...), CategoryIds: append([]int32{}, e.Filter.Categories...), Area: []float64{}, Scopes: append([]string{}, e.Scopes...),
		Order: notificationapi.WebhookOrder(e.Order), InFlight: int32(e.InFlight),
		State: notificationapi.WebhookState(e.State), StateSince: e.StateSince, StateReason: notificationapi.WebhookStateReason(e.StateReason), DisableAt: service.OrZero(e.DisableAt),
		HeldDropped: e.HeldDropped, SecretSince: e.Secrets.Since,
		Version: e.Version, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
		Summary: notificationapi.WebhookSummary{
			Succeeded: s.Succeeded, Failed: s.Failed, Waiting: s.Waiting, Held: s.Held,
			OldestWaitingAt: service.OrZero(s.OldestWaiting), OpenUntil: service.OrZero(s.OpenUntil),
		},
	}
	if e.Filter.Area != nil {
		view.Area = e.Filter.Area[:]
	}
	if s.P95 != nil {
		view.Summary.P95Ms = new(milliseconds(*s.P95))
	}
	if until := e.Secrets.PreviousUntil; until != nil && time.Now().Before(*until) {
		view.PreviousSecretUntil = *until
	}
	return view
}

func deliveryOf(d webhook.Record) notificationapi.Delivery {
	view := notificationapi.Delivery{
		ID: d.ID, WebhookID: d.Endpoint, MessageID: d.MessageID, Type: d.Type,
		ReportID: service.OrZero(d.ReportID), ReportVersion: d.ReportVersion,
		State: notificationapi.DeliveryState(d.State), AttemptCount: int32(d.Attempts),
		LastStatus: int32(service.OrZero(d.LastStatus)), LastClass: d.LastClass, LastError: d.LastError,
		CreatedAt: d.CreatedAt, DoneAt: service.OrZero(d.DoneAt),
	}
	if d.State == "waiting" {
		view.DueAt = d.DueAt
	}
	return view
}

func webhookAttemptOf(d webhook.Record, a webhook.AttemptRecord) notificationapi.DeliveryAttempt {
	return notificationapi.DeliveryAttempt{
		Number: int32(a.N), At: a.At, DurationMs: a.Duration.Milliseconds(),
		Status: int32(service.OrZero(a.Status)), Class: a.Class, Error: a.Error, Response: a.Response,
		RequestHeaders: webhook.ShownHeaders(d.MessageID, a.At),
	}
}

func pastOf(p webhook.Past) notificationapi.WebhookHistory {
	return notificationapi.WebhookHistory{Since: p.Since, StepSeconds: int32(p.Step.Seconds()), Points: service.Each(p.Points, pointOf)}
}

func pointOf(p webhook.Point) notificationapi.WebhookPoint {
	view := notificationapi.WebhookPoint{At: p.At, Succeeded: p.Succeeded, Failed: p.Failed}
	if p.P95 != nil {
		view.P95Ms = new(milliseconds(*p.P95))
	}
	return view
}
