package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// Reporters hide their names from their own reports; for everybody else there is no
// such thing, whoever filed the report. No answer has the name afterwards.
func TestHideName(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, ben, olga := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident), token(t, "olga", auth.Official)
	rep := s.file(ann, "public")
	path := "/reports/" + rep.ID.String()
	hide := func(who, level string) answer {
		return s.do(call{method: "PUT", path: path + "/privacy", token: who, body: `{"privacy_level":"` + level + `"}`})
	}
	for who, want := range map[string]int{"": http.StatusUnauthorized, ben: http.StatusNotFound, olga: http.StatusNotFound} {
		if a := hide(who, "anonymous"); a.StatusCode != want {
			t.Errorf("%d, want %d: %s", a.StatusCode, want, a.body)
		}
	}
	if a := hide(ann, "public"); a.StatusCode != http.StatusBadRequest {
		t.Errorf("the other way: %d", a.StatusCode)
	}
	if got, _ := ok[reportapi.Report](s, call{method: "GET", path: path}, http.StatusOK); got.ReporterName == "" {
		t.Fatal("there is no name to hide")
	}
	name := rep.ReporterName
	if a := hide(ann, "anonymous"); a.StatusCode != http.StatusOK || a.Header.Get("ETag") != `"2"` {
		t.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	for _, who := range []string{"", ann, ben, olga} {
		for _, read := range []string{path, path + "/history", "/reports"} {
			if a := s.do(call{method: "GET", path: read, token: who}); a.StatusCode == http.StatusOK && strings.Contains(string(a.body), `"`+name+`"`) {
				t.Errorf("%s has the name: %s", read, a.body)
			}
		}
	}
	if got, _ := ok[reportapi.Report](s, call{method: "GET", path: path, token: ann}, http.StatusOK); !got.Mine || got.PrivacyLevel != "anonymous" {
		t.Errorf("the reporter sees %+v", got)
	}
}
