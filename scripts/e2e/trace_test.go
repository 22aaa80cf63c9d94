package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// One request is found in the logs of both services by the id of the trace in its
// answer: what was asked, and what became of the message. The client does not choose
// it: two requests of one device have none in common.
func TestRequestIsFollowedThroughBothServices(t *testing.T) {
	t.Parallel()
	const chosen = "4bf92f3577b34da6a3ce929d0e0e4736"
	c := startStack(t)
	gateway := gatewaytest.Start(t, addresses([]*process{c.report}), addresses([]*process{c.notification}))
	ana := c.signIn("Ana", "resident")
	var traces []string
	for range 2 {
		body := `{"title":"Dark crossing","description":"","category_id":2,"privacy_level":"anonymous"}`
		req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, gateway.URL+"/reports", strings.NewReader(body)))
		req.Header.Set("Authorization", "Bearer "+ana.Token())
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Traceparent", "00-"+chosen+"-00f067aa0ba902b7-01")
		resp := must(http.DefaultClient.Do(req))
		resp.Body.Close()
		parts := strings.Split(resp.Header.Get("Traceparent"), "-")
		if resp.StatusCode != http.StatusCreated || len(parts) != 4 {
			t.Fatalf("status %d, traceparent %q", resp.StatusCode, resp.Header.Get("Traceparent"))
		}
		traces = append(traces, parts[1])
	}
	if traces[0] == traces[1] || slices.Contains(traces, chosen) {
		t.Errorf("traces %q, want two, and none that the client chose", traces)
	}
	for _, line := range []struct {
		process *process
		message string
	}{{c.report, "request"}, {c.notification, "message handled"}} {
		found := func() []string {
			return slices.DeleteFunc(line.process.log.messages(line.message), func(text string) bool {
				return !strings.Contains(text, `"trace_id":"`+traces[0]+`"`)
			})
		}
		eventually.True(t, line.message+" is logged with its trace", func() bool { return len(found()) > 0 })
		if lines := found(); len(lines) != 1 {
			t.Errorf("%d lines %q with the trace, want one:\n%s", len(lines), line.message, strings.Join(lines, "\n"))
		}
	}
}
