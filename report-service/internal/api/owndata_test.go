package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// Callers get their own data as a file, the anonymous reports too, and nobody else does.
func TestOwnData(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	s.file(ann, "anonymous")
	own, res := ok[reportapi.OwnData](s, call{method: "GET", path: "/reports/mine/data", token: ann}, http.StatusOK)
	if own.UserID != "ann" || len(own.Data["reports"]) != 1 || own.Data["reports"][0]["privacy_level"] != "anonymous" {
		t.Errorf("ann's data is %+v", own)
	}
	if name := res.Header.Get("Content-Disposition"); !strings.HasPrefix(name, "attachment;") || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the answer is %q, %q; want a file that nobody keeps", name, res.Header.Get("Cache-Control"))
	}
	others, _ := ok[reportapi.OwnData](s, call{method: "GET", path: "/reports/mine/data", token: token(t, "olga", auth.Official)}, http.StatusOK)
	if others.UserID != "olga" || len(others.Data["reports"]) != 0 {
		t.Errorf("olga's data is %+v", others)
	}
	s.wantProblem(refusal{"", call{method: "GET", path: "/reports/mine/data"}, 401, "unauthenticated", nil})
}
