package admin

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/open311"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// BackOffice has the systems of departments that get reports by Open311.
type BackOffice struct {
	Store *open311.Store
	Rules webhook.Rules  // for the addresses that may be registered
	Keys  *event.Keyring // seal keys
}

// Operations are those on targets.
func (a BackOffice) Operations() openapi.Operations {
	return openapi.Operations{
		"listTargets":     {Handler: a.list, Timeout: service.DefaultTimeout},
		"createTarget":    {Handler: service.Decoded(a.create), Timeout: service.DefaultTimeout},
		"changeTarget":    {Handler: service.Decoded(a.change), Timeout: service.DefaultTimeout},
		"deleteTarget":    {Handler: a.delete, Timeout: service.DefaultTimeout},
		"decideRequest":   {Handler: service.Decoded(a.decide), Timeout: service.DefaultTimeout},
		"listDifferences": {Handler: a.differences, Timeout: service.DefaultTimeout},
	}
}

// list handles GET /admin/open311/targets.
func (a BackOffice) list(w http.ResponseWriter, r *http.Request) error {
	targets, err := a.Store.List(r.Context())
	return service.Answer(w, http.StatusOK, notificationapi.Targets{Targets: service.Each(targets, a.targetOf)}, err)
}

// create handles POST /admin/open311/targets.
func (a BackOffice) create(w http.ResponseWriter, r *http.Request, request notificationapi.NewTarget) error {
	return a.save(w, r, uuid.Nil, http.StatusCreated, notificationapi.TargetChange{
		Name: &request.Name, URL: &request.URL, Jurisdiction: &request.Jurisdiction, APIKey: &request.APIKey, UpdateKey: &request.UpdateKey, ConnectionKey: &request.ConnectionKey,
		Services: request.Services, Statuses: request.Statuses, Repeats: &request.Repeats,
	})
}

// change handles PATCH /admin/open311/targets/{id}.
func (a BackOffice) change(w http.ResponseWriter, r *http.Request, request notificationapi.TargetChange) error {
	return a.save(w, r, openapi.PathID(r, "id"), http.StatusOK, request)
}

// save changes a target, or makes one for uuid.Nil, and answers with it.
func (a BackOffice) save(w http.ResponseWriter, r *http.Request, id uuid.UUID, status int, request notificationapi.TargetChange) error {
	t, err := a.Store.Save(r.Context(), auth.Must(r).ID, id, func(t *open311.Target) error {
		if err := t.Open(a.Keys); err != nil && (request.APIKey == nil || request.UpdateKey == nil || request.ConnectionKey == nil) {
			return err
		}
		known := t.URL
		replace(&t.Name, request.Name)
		replace(&t.URL, request.URL)
		replace(&t.Jurisdiction, request.Jurisdiction)
		replace(&t.Key, request.APIKey)
		replace(&t.UpdateKey, request.UpdateKey)
		replace(&t.ConnectionKey, request.ConnectionKey)
		replace(&t.Repeats, request.Repeats)
		replace(&t.Enabled, request.Enabled)
		if request.Services != nil {
			t.Services = make(map[int32]string)
		}
		for _, s := range request.Services {
			t.Services[s.CategoryID] = s.ServiceCode
		}
		if request.Statuses != nil {
			t.Statuses = make(map[string]string)
		}
		for _, s := range request.Statuses {
			t.Statuses[s.Word] = s.Status
		}
		if err := t.Check(a.Rules, known); err != nil {
			return err
		}
		t.Seal(a.Keys)
		return nil
	})
	return service.Answer(w, status, a.targetOf(t), err)
}

func replace[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// delete handles DELETE /admin/open311/targets/{id}.
func (a BackOffice) delete(w http.ResponseWriter, r *http.Request) error {
	return service.Done(w, a.Store.Delete(r.Context(), auth.Must(r).ID, openapi.PathID(r, "id")))
}

// decide handles POST /admin/open311/targets/{id}/reports/{report_id}.
func (a BackOffice) decide(w http.ResponseWriter, r *http.Request, request notificationapi.RequestDecision) error {
	return service.Done(w, a.Store.Decide(r.Context(), auth.Must(r).ID, openapi.PathID(r, "id"), openapi.PathID(r, "report_id"), strings.TrimSpace(request.Number)))
}

// differences handles GET /admin/open311/differences.
func (a BackOffice) differences(w http.ResponseWriter, r *http.Request) error {
	found, err := a.Store.Differences(r.Context())
	return service.Answer(w, http.StatusOK, notificationapi.Differences{Differences: service.Each(found, func(d open311.Difference) notificationapi.Difference {
		return notificationapi.Difference{
			TargetID: d.Target, ReportID: d.Report, Kind: string(d.Kind), Since: d.Since, Number: d.Number, Status: d.Status, TheirStatus: d.TheirStatus,
			Undecided: d.Undecided, Unknown: d.Unknown, Error: cmp.Or(d.Error, d.Class),
		}
	})}, err)
}

func (a BackOffice) targetOf(t open311.Target) notificationapi.Target {
	services, statuses := notificationapi.TargetServices{}, notificationapi.TargetStatuses{}
	for _, category := range slices.Sorted(maps.Keys(t.Services)) {
		services = append(services, notificationapi.TargetService{CategoryID: category, ServiceCode: t.Services[category]})
	}
	for _, word := range slices.Sorted(maps.Keys(t.Statuses)) {
		statuses = append(statuses, notificationapi.TargetStatus{Word: word, Status: t.Statuses[word]})
	}
	err := t.Open(a.Keys)
	return notificationapi.Target{
		ID: t.ID, Name: t.Name, URL: t.URL, Jurisdiction: t.Jurisdiction, HasKey: err != nil || t.Key != "", TakesUpdates: err != nil || t.UpdateKey != "", Services: services, Statuses: statuses,
		Repeats: t.Repeats, Enabled: t.Enabled, CreatedAt: t.CreatedAt, PolledAt: service.OrZero(t.PolledAt),
		Problem: t.Problem, ProblemSince: service.OrZero(t.ProblemSince),
	}
}
