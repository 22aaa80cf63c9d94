package operators

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
)

// The types here have what the documents of both services say, and nothing else.
func TestTypesAreThoseOfTheDocuments(t *testing.T) {
	t.Parallel()
	for name, schemas := range map[string]map[string]any{
		"notification-service": {"PoolHistory": historyView{}, "PoolSeries": series{}},
		"report-service":       {"OutboxHistory": historyView{}, "OutboxSeries": series{}},
	} {
		for schema, of := range map[string]any{
			"ScheduleList": scheduleList{}, "Schedule": scheduleView{}, "ScheduleRunPage": runPage{}, "ScheduleRun": run{}, "ScheduleAct": scheduleAct{},
			"ErasureList": erasureList{}, "Erasure": erasureView{}, "ErasureRequest": erasureRequest{}, "HistoryRun": historyRun{},
			"OperatorHealth": health{}, "HealthPart": healthPart{},
			"Reconciliation": reconciliationView{}, "ReconciliationGroup": reconciliationGroup{}, "MissingMessagePage": missingPage{}, "MissingMessage": missingMessage{}, "MissingClose": missingClose{}, "MissingClosed": missingClosed{},
		} {
			schemas[schema] = of
		}
		doc, err := openapi3.NewLoader().LoadFromFile("../../docs/openapi/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for schema, of := range schemas {
			ref := doc.Components.Schemas[schema]
			if ref == nil {
				t.Fatalf("%s has no schema %s", name, schema)
			}
			fields := reflect.TypeOf(of)
			var here []string
			for i := range fields.NumField() {
				field, omit, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
				here = append(here, field)
				required := slices.Contains(ref.Value.Required, field)
				if ref.Value.Properties[field] == nil && field != "queue" { // the outbox has one queue
					t.Errorf("%s: %s has no %s", name, schema, field)
				}
				if !required && omit == "" && schema != "ScheduleAct" || required && omit != "" && field != "queue" {
					t.Errorf("%s: whether %s.%s may be missing differs", name, schema, field)
				}
			}
			for field := range ref.Value.Properties {
				if !slices.Contains(here, field) {
					t.Errorf("%s: %s has a %s, which %v has not", name, schema, field, fields)
				}
			}
		}
	}
}

// A city is a service with one schedule and one erasure.
type city struct{ acts []schedule.Act }

var due = time.Date(2026, 3, 1, 5, 0, 0, 0, time.UTC)

func (c *city) List(context.Context) ([]schedule.Schedule, error) {
	return []schedule.Schedule{{Name: "retention", Spec: "every hour", Latest: &schedule.Run{Period: "p", State: schedule.Done, Due: due}, Now: due}}, nil
}

func (c *city) Runs(_ context.Context, _ string, before time.Time, limit int) ([]schedule.Run, error) {
	if !before.IsZero() {
		return nil, nil
	}
	return slices.Repeat([]schedule.Run{{Period: "p", State: schedule.Done, Due: due}}, limit), nil
}

func (c *city) Operate(_ context.Context, act schedule.Act) error {
	c.acts = append(c.acts, act)
	return nil
}

type eraser struct{}

func (eraser) Request(_ context.Context, actor, userID string) (erasure.Erasure, error) {
	return erasure.Erasure{Actor: actor + " erased " + userID}, nil
}

func (eraser) List(context.Context, int) ([]erasure.Erasure, error) {
	return []erasure.Erasure{{Actor: "olga", DoneAt: &due}}, nil
}

var lost = uuid.MustParse("0190a000-0000-7000-8000-000000000001")

func (c *city) Groups(context.Context) ([]reconciliation.Summary, error) {
	return []reconciliation.Summary{{Group: "photos", Figures: reconciliation.Figures{Missing: 2, Late: time.Minute}}}, nil
}

func (c *city) Messages(_ context.Context, s reconciliation.Selection) ([]reconciliation.Message, error) {
	if !s.After.To.IsZero() && (!s.After.To.Equal(due) || s.After.ID != lost || s.After.Group != "photos") {
		return nil, errors.New("another cursor")
	}
	if !s.After.To.IsZero() || s.State != reconciliation.Missing || s.Group != "photos" {
		return nil, nil
	}
	return slices.Repeat([]reconciliation.Message{{ID: lost, Group: "photos", Key: "k", State: s.State, To: due}}, s.Limit), nil
}

func (c *city) Close(_ context.Context, closing reconciliation.Closing) (int, error) {
	if closing.Actor != "pavel" || closing.Group != "photos" || closing.Reason != "purged" {
		return 0, errors.New("another request")
	}
	return len(closing.Messages), nil
}

func TestOperations(t *testing.T) {
	t.Parallel()
	c := new(city)
	operations := openapi.Operations{"history": History(func(_ context.Context, span time.Duration) (history.History, error) {
		if span != 5*time.Minute {
			return history.History{}, errors.New("another span")
		}
		return history.History{Step: time.Minute, Levels: map[string][]float64{"depth votes": {1}, "pending": {2}}}, nil
	})}
	for _, part := range []openapi.Operations{ScheduleOperations(c), ErasureOperations(eraser{}), HealthOperations(monitor.New(monitor.Part{Name: "database"})), ReconciliationOperations(c)} {
		for id, o := range part {
			operations[id] = o
		}
	}
	r := chi.NewRouter()
	for id, o := range operations {
		if o.Timeout != service.DefaultTimeout {
			t.Errorf("%s has the timeout %s", id, o.Timeout)
		}
		r.Handle("/"+id+"/{name}", service.Errors{Log: zerolog.Nop()}.Handle(o.Handle))
	}
	for _, tt := range []struct {
		target, body string
		status       int
		want         string
	}{
		{"listSchedules/x", "", 200, `{"schedules":[{"name":"retention","times":"every hour","catch_up":"",`},
		{"listScheduleRuns/x?limit=2", "", 200, `"next_cursor":"1772341200000000"`},
		{"listScheduleRuns/x?limit=2&cursor=1772341200000000", "", 200, `{"runs":[]}`},
		{"pauseSchedule/retention", `{"reason":"backup"}`, 204, ""},
		{"requestErasure/x", `{"user_id":"kanari","confirm_user_id":"kanari"}`, 202, `"actor":"pavel erased kanari","state":"running"`},
		{"requestErasure/x", `{"user_id":"kanari","confirm_user_id":"ann"}`, 400, "must be the same as user_id"},
		{"eraseOwnData/x", "", 202, ""},
		{"listErasures/x?limit=20", "", 200, `"actor":"olga","state":"done"`},
		{"readHealth/x", "", 200, `"parts":[{"name":"database","state":"unknown","cause":"not_read","names":[],"count":0,"since":`},
		{"readReconciliation/x", "", 200, `{"groups":[{"group":"photos","missing":2,"unknown":0,"awaited":0,"gap":0,"late_seconds":60}]}`},
		{"listMissingMessages/x?limit=1&state=missing&group=photos", "", 200, `"routing_key":"k","published_from":"0001-01-01T00:00:00Z","published_until":"2026-03-01T05:00:00Z"}],"next_cursor":"1772341200000000.photos.` + lost.String() + `"`},
		{"listMissingMessages/x?limit=1&state=missing&group=photos&cursor=1772341200000000.photos." + lost.String(), "", 200, `{"messages":[]}`},
		{"listMissingMessages/x?limit=1&cursor=99999999999999999999.photos." + lost.String(), "", 400, "must be the next_cursor"},
		{"closeMissingMessages/x", `{"group":"photos","message_ids":["` + lost.String() + `"],"reason":"purged"}`, 200, `{"closed":1}`},
		{"history/x?minutes=5", "", 200, `[{"name":"pending","runs":[{"from":0,"values":[2]}]},{"name":"depth","queue":"votes",`},
		{"history/x?minutes=6", "", 500, ""},
	} {
		req := httptest.NewRequest(http.MethodPost, "/"+tt.target, strings.NewReader(tt.body))
		req = req.WithContext(auth.With(req.Context(), auth.Principal{ID: "pavel", Role: auth.Operator}))
		res := httptest.NewRecorder()
		r.ServeHTTP(res, req)
		if res.Code != tt.status || !strings.Contains(res.Body.String(), tt.want) {
			t.Errorf("%s: %d %s, want %d with %s", tt.target, res.Code, res.Body, tt.status, tt.want)
		}
	}
	if want := (schedule.Act{Actor: "pavel", Action: schedule.Pause, Job: "retention", Reason: "backup"}); len(c.acts) != 1 || c.acts[0] != want {
		t.Errorf("acts %+v, want one %+v", c.acts, want)
	}
}
