package api_test

import (
	"net/http"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// Officials correct a report at the version that they have seen; what a new report may
// not have, a correction may not either.
func TestCorrectReport(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	rep := s.file(ann, "anonymous")
	path := "/reports/" + rep.ID.String()
	patch := func(who, body, version string) answer {
		return s.do(call{method: "PATCH", path: path, token: who, body: body, headers: map[string]string{"If-Match": version}})
	}
	for _, tt := range []struct {
		who, body, version string
		want               int
	}{
		{ann, `{"category_id":1,"reason":"road"}`, `"1"`, http.StatusForbidden},
		{olga, `{"category_id":1}`, `"1"`, http.StatusBadRequest},
		{olga, `{"reason":"road"}`, `"1"`, http.StatusBadRequest},
		{olga, `{"category_id":1,"reason":" "}`, `"1"`, http.StatusBadRequest},
		{olga, `{"category_id":999,"reason":"road"}`, `"1"`, http.StatusBadRequest},
		{olga, `{"latitude":1,"reason":"road"}`, `"1"`, http.StatusBadRequest},
		{olga, `{"category_id":1,"reason":"road"}`, `"7"`, http.StatusPreconditionFailed},
		{olga, `{"category_id":1,"latitude":-6.81234567,"longitude":107.5,"address":"Jl. Braga 1","reason":"road"}`, `"1"`, http.StatusOK},
	} {
		if a := patch(tt.who, tt.body, tt.version); a.StatusCode != tt.want {
			t.Errorf("%s at %s: %d, want %d: %s", tt.body, tt.version, a.StatusCode, tt.want, a.body)
		}
	}
	got, a := ok[reportapi.Report](s, call{method: "GET", path: path}, http.StatusOK)
	if got.CategoryID != 1 || got.Latitude == nil || *got.Latitude != -6.81235 || got.Address != "Jl. Braga 1" || a.Header.Get("ETag") != `"2"` {
		t.Errorf("corrected to %s", a.body)
	}
	history, a := ok[reportapi.History](s, call{method: "GET", path: path + "/history"}, http.StatusOK)
	if c := history.History[1].Correction; c == nil || c.Category.To != 1 || c.Position.To.Latitude != -6.81235 || c.Address.To != "Jl. Braga 1" {
		t.Errorf("the history is %s", a.body)
	}
}
