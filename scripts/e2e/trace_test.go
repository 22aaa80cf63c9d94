package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/eventually"
)

// Who asks about one request finds it in the logs of both services, by the id of a
// trace that the client began: what was asked, and what became of the message.
func TestRequestIsFollowedThroughBothServices(t *testing.T) {
	t.Parallel()
	const trace, other = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	for _, id := range []string{trace, other} {
		if _, err := ana.CreateReport(t.Context(), draft("Dark crossing"), "Traceparent", "00-"+id+"-00f067aa0ba902b7-01"); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []struct {
		process *process
		message string
	}{{c.report, "request"}, {c.notification, "message handled"}} {
		found := func() []string {
			return slices.DeleteFunc(line.process.log.messages(line.message), func(text string) bool {
				return !strings.Contains(text, `"trace_id":"`+trace+`"`)
			})
		}
		eventually.True(t, line.message+" is logged with its trace", func() bool { return len(found()) > 0 })
		if lines := found(); len(lines) != 1 {
			t.Errorf("%d lines %q with the trace, want one:\n%s", len(lines), line.message, strings.Join(lines, "\n"))
		}
	}
}
