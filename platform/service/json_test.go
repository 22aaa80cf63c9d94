package service_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/service"
)

type pool struct {
	Prefetch int `json:"prefetch"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body    string
		want    int
		pointer string // of the fault; "" if it is taken
	}{
		{`{"prefetch":10}`, 10, ""},
		{``, 0, ""},
		{`{"prefetch":10.0}`, 0, "/prefetch"},
		{`{"prefetch":1e2}`, 0, "/prefetch"},
		{`{"prefetch":9223372036854775808}`, 0, "/prefetch"},
	} {
		got, err := service.Decode[pool](httptest.NewRequest(http.MethodPatch, "/", strings.NewReader(tt.body)))
		p, _ := errors.AsType[service.Problem](err)
		switch {
		case tt.pointer == "" && (err != nil || got.Prefetch != tt.want):
			t.Errorf("%s: got %d, error %v; want %d", tt.body, got.Prefetch, err, tt.want)
		case tt.pointer != "" && (p.Status != http.StatusBadRequest || len(p.Errors) != 1 || p.Errors[0].Pointer != tt.pointer):
			t.Errorf("%s: got error %#v; want 400 that names %s", tt.body, err, tt.pointer)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	service.WriteProblem(w, httptest.NewRequest(http.MethodGet, "/", nil), service.Unavailable.New("away"))
	if got := w.Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %q, want 2", got)
	}
}

// Each answer is a line, so that in a terminal what follows begins at the left.
func TestJSONEndsItsLine(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for name, answer := range map[string]func(http.ResponseWriter){
		"an answer": func(w http.ResponseWriter) { _ = service.Encode(w, http.StatusOK, pool{Prefetch: 1}) },
		"a problem": func(w http.ResponseWriter) { service.NotFoundHandler(w, r) },
		"a health check": func(w http.ResponseWriter) {
			service.NewHealth(zerolog.Nop(), service.Details{}).Ready(w, r)
		},
	} {
		w := httptest.NewRecorder()
		answer(w)
		if body := w.Body.String(); !strings.HasSuffix(body, "}\n") || strings.Count(body, "\n") != 1 {
			t.Errorf("%s is %q, want one line", name, body)
		}
	}
}
