package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/trace"
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

// A program behind the gateway brings a trace along. Whatever follows from its request is
// in that trace: the answer, the outbox row, the message, its story, the webhook, the log
// lines of three programs, and the exemplars of the metrics.
func TestTraceGoesFromTheRequestToTheWebhook(t *testing.T) {
	t.Parallel()
	const id, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	c := startStack(t)
	operator, feed, other := c.userOf("operator", "operator"), c.listenToFeed(), openOtherSystem(t)
	other.register(c, operator)
	messages := c.spyOn(topology.Exchange())

	answer, report := fileInTrace(t, c, "00-"+id+"-"+caller+"-01")
	if trace.ID(answer) != id || strings.Contains(answer, caller) {
		t.Errorf("the answer has the trace context %q, want another span of %s", answer, id)
	}
	var row string
	var message string
	if err := c.reportDB.QueryRow(t.Context(), `select headers ->> 'traceparent', id from outbox_messages where report_id = $1`, report.ID).Scan(&row, &message); err != nil {
		t.Fatal(err)
	}
	header, _ := messages.await(t, message).Headers[event.TraceHeader].(string)
	if row != answer || header != answer {
		t.Errorf("the trace context is %q in the outbox row and %q in the message, want %q as in the answer", row, header, answer)
	}
	other.await(1)
	requests, _ := other.seen()
	if last := requests[len(requests)-1]; !strings.Contains(last, `"Traceparent":["00-`+id+`-`) || strings.Contains(last, answer) {
		t.Errorf("the webhook is %s, want it in another span of the trace %s", last, id)
	}
	var page struct{ Messages []struct{ ID string } }
	var story struct {
		TraceID string `json:"trace_id"`
	}
	eventually.True(t, "the trace leads to the message and its story", func() bool {
		err := operator.Do(t.Context(), http.MethodGet, "/admin/outbox/messages?status=published&trace_id="+id, nil, &page)
		return err == nil && len(page.Messages) == 1 && page.Messages[0].ID == message &&
			operator.Do(t.Context(), http.MethodGet, "/admin/outbox/messages/"+message+"/story", nil, &story) == nil && story.TraceID == id
	})
	for _, p := range []struct {
		process *process
		message string
	}{{c.report, "request"}, {c.notification, "message handled"}, {c.worker, "message handled"}} {
		eventually.True(t, p.process.path+" logs the trace", func() bool {
			return strings.Contains(strings.Join(p.process.log.messages(p.message), "\n"), `"trace_id":"`+id+`"`)
		})
	}
	feed.await(t, 1)
	for name, p := range map[string]*process{
		"http_request_duration_seconds": c.report, "relay_commit_to_confirm_seconds": c.report, "sse_commit_to_flush_seconds": c.notification,
	} {
		eventually.True(t, name+" names the trace", func() bool {
			return slices.ContainsFunc(strings.Split(openMetrics(t, p), "\n"), func(line string) bool {
				return strings.HasPrefix(line, name+"_bucket{") && strings.Contains(line, `# {trace_id="`+id+`"}`)
			})
		})
	}
}

// fileInTrace files a report at report-service itself, and returns the trace context of
// the answer.
func fileInTrace(t *testing.T, c *stack, parent string) (answer string, report client.Report) {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, c.report.url()+"/reports",
		strings.NewReader(`{"title":"Dark crossing","description":"","category_id":2,"privacy_level":"anonymous"}`)))
	req.Header.Set("Authorization", "Bearer "+c.userOf("ana", "resident").Token())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(trace.Header, parent)
	resp := must(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&report); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("file a report: status %d, error %v", resp.StatusCode, err)
	}
	return resp.Header.Get(trace.Header), report
}

// openMetrics returns the metrics of p as Prometheus reads them.
func openMetrics(t *testing.T, p *process) string {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, p.operations()+"/metrics", nil))
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	resp := must(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	return string(must(io.ReadAll(resp.Body)))
}
