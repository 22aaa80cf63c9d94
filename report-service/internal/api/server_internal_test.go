package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/service"
)

// The service does not start with an operation that lacks its handler or its
// timeout, or that two parts answer.
func TestOperationsAreWhole(t *testing.T) {
	t.Parallel()
	handler := func(http.ResponseWriter, *http.Request) error { return nil }
	whole := operations{"vote": {handler, changeTimeout}, "export": {handler, unlimited}}
	if handlers, err := handlersOf(whole); err != nil || len(handlers) != 2 {
		t.Errorf("%d handlers, error %v; want both", len(handlers), err)
	}
	for name, broken := range map[string]operations{
		"no timeout": {"listReports": {handler: handler}},
		"no handler": {"listReports": {timeout: service.DefaultTimeout}},
		"twice":      {"vote": {handler, service.DefaultTimeout}},
	} {
		_, err := handlersOf(whole, broken)
		for id := range broken {
			if err == nil || !strings.Contains(err.Error(), id) {
				t.Errorf("%s: error %v, want one that names %s", name, err, id)
			}
		}
	}
}
