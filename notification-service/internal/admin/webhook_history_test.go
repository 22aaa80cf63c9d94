package admin_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
)

// The past of an endpoint comes by minutes or by hours, and includes the present step.
func TestWebhookHistory(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Auditor)
	id := uuid.New()
	for _, sql := range []string{
		`insert into webhook_endpoints (id, url, secret) values ($1::uuid, 'https://hooks.example.org/', $1::text)`,
		`with made as (
		   insert into deliveries (channel, lane, target, message_id, kind, body, state) values ('webhook', $1::uuid::text, $1::text, 'm', 'k', '', 'done')
		   returning id)
		 insert into delivery_attempts (delivery_id, n, at, duration_ms, class) select id, 1, now(), 41, '2xx' from made`,
	} {
		if _, err := c.Pool.Exec(t.Context(), sql, id); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]struct{ span, step time.Duration }{
		"": {time.Hour, time.Minute}, "?span=hour": {time.Hour, time.Minute}, "?span=week": {7 * 24 * time.Hour, time.Hour},
	} {
		var past notificationapi.WebhookHistory
		c.call("GET", "/admin/webhooks/"+id.String()+"/history"+query, "", http.StatusOK, &past)
		end := past.Since.Add(want.span)
		if past.StepSeconds != int32(want.step.Seconds()) || end.Before(time.Now()) || end.After(time.Now().Add(want.step)) {
			t.Errorf("%q: from %v in steps of %d s", query, past.Since, past.StepSeconds)
		}
		if len(past.Points) != 1 || past.Points[0].Succeeded != 1 || past.Points[0].P95Ms == nil || *past.Points[0].P95Ms != 41 {
			t.Errorf("%q: points %+v", query, past.Points)
		}
	}
	c.call("GET", "/admin/webhooks/"+id.String()+"/history?span=day", "", http.StatusBadRequest, nil)
	c.call("GET", "/admin/webhooks/"+uuid.NewString()+"/history", "", http.StatusNotFound, nil)
	c.call("DELETE", "/admin/webhooks/"+id.String(), "", http.StatusForbidden, nil)
}
