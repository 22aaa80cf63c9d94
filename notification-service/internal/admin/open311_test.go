package admin_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/open311"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

// backOffice returns the operations on targets of Open311 as the service has them.
func backOffice(t *testing.T, r *consumertest.Harness) admin.BackOffice {
	t.Helper()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	return admin.BackOffice{Store: open311.NewStore(r.Pool, false), Keys: keys}
}

// An operator connects a system, changes it and disconnects it. No answer, and nothing in the
// audit, has a key.
func TestTargets(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	const secret = "s3cret-of-works"
	var made notificationapi.Target
	path := "/admin/open311/targets"
	body := `{"name":" Works ","url":"https://works.example.org/open311/v2/","api_key":"` + secret + `","connection_key":"ccx_AAAA","services":[{"category_id":2,"service_code":"LIGHT"}],"statuses":[{"word":"Crew booked","status":"action_scheduled"}]}`
	c.call(http.MethodPost, path, body, http.StatusCreated, &made)
	if made.Name != "Works" || made.URL != "https://works.example.org/open311/v2" || !made.HasKey || made.Statuses[0].Word != "crew_booked" || !made.Enabled {
		t.Errorf("made %+v", made)
	}
	for body, pointer := range map[string]string{
		strings.Replace(body, "https://works.example.org", "http://10.0.0.1", 1): "/url",
		strings.Replace(body, "ccx_AAAA", "other", 1):                            "/connection_key",
		strings.Replace(body, `"category_id":2`, `"category_id":0`, 1):           "/services",
		strings.Replace(body, "action_scheduled", "lunch", 1):                    "/statuses",
	} {
		var p problem
		c.call(http.MethodPost, path, body, http.StatusBadRequest, &p)
		if len(p.Errors) == 0 || !strings.HasPrefix(p.Errors[0].Pointer, pointer) {
			t.Errorf("%s: %+v, want a fault of %s", body, p, pointer)
		}
	}
	var changed notificationapi.Target
	text := c.call(http.MethodPatch, path+"/"+made.ID.String(), `{"enabled":false,"services":[{"category_id":2,"service_code":"LIGHT"},{"category_id":3,"service_code":"WASTE"}]}`, http.StatusOK, &changed)
	if changed.Enabled || len(changed.Services) != 2 || changed.Name != "Works" || !changed.HasKey {
		t.Errorf("changed %+v", changed)
	}
	// A report that may have arrived, and what was decided about it.
	report := uuid.New()
	c.exec(`insert into open311_requests (target_id, report_id, our_status, created_at, sent_at, unknown) values ($1, $2, 'pending', now() - interval '1 hour', now(), true)`, made.ID, report)
	var found notificationapi.Differences
	text += c.call(http.MethodGet, "/admin/open311/differences", "", http.StatusOK, &found)
	if len(found.Differences) != 1 || found.Differences[0].Kind != "no_number" || !found.Differences[0].Undecided || found.Differences[0].ReportID != report {
		t.Errorf("differences %+v", found.Differences)
	}
	decide := path + "/" + made.ID.String() + "/reports/"
	c.call(http.MethodPost, decide+uuid.NewString(), `{}`, http.StatusNotFound, nil)
	c.call(http.MethodPost, decide+report.String(), `{"number":"W-7"}`, http.StatusNoContent, nil)
	c.call(http.MethodPost, decide+report.String(), `{}`, http.StatusConflict, nil)
	text += c.call(http.MethodGet, path, "", http.StatusOK, nil) + c.call(http.MethodGet, "/admin/dlq/audit", "", http.StatusOK, nil)
	for _, tt := range []struct {
		set  string
		want open311.Health
	}{
		{"state = 'disabled', problem = ''", open311.Well}, {"state = 'disabled', problem = 'failed'", open311.Disabled},
		{"state = 'enabled', problem_since = now() - interval '1 hour'", open311.Failing}, {"problem_since = null, polled_at = now() - interval '1 hour'", open311.Failing},
		{"polled_at = now(), mailed = true", open311.Differing}, {"mailed = false", open311.Well},
	} {
		c.exec(`update open311_targets set ` + tt.set)
		if worst, names, err := open311.NewStore(c.Pool, false).Worst(t.Context()); worst != tt.want || !slices.Equal(names, []string{"Works"}) || err != nil {
			t.Errorf("%s: %d, %q, %v; want %d", tt.set, worst, names, err, tt.want)
		}
	}
	c.call(http.MethodDelete, path+"/"+made.ID.String(), "", http.StatusNoContent, nil)
	c.call(http.MethodDelete, path+"/"+made.ID.String(), "", http.StatusNotFound, nil)
	if strings.Contains(text, secret) || strings.Contains(text, "ccx_AAAA") {
		t.Errorf("an answer has a key: %s", text)
	}
	for _, action := range []string{"open311_create", "open311_change", "open311_decide"} {
		if !strings.Contains(text, action) {
			t.Errorf("the audit has no %s", action)
		}
	}
}

func (c *console) exec(sql string, args ...any) {
	c.t.Helper()
	if _, err := c.Pool.Exec(c.t.Context(), sql, args...); err != nil {
		c.t.Fatal(err)
	}
}
