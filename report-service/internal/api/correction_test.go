package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// Officials correct a report at the version that they have seen; what a new report may
// not have, a correction may not either.
func TestCorrectReport(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, ben, olga := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident), token(t, "olga", auth.Official)
	rep := s.file(ann, "anonymous")
	path := "/reports/" + rep.ID.String()
	patch := func(who, body, version string) answer {
		return s.do(call{method: "PATCH", path: path, token: who, body: body, headers: map[string]string{"If-Match": version}})
	}
	for _, tt := range []struct {
		who, body, version string
		want               int
	}{
		{ben, `{"category_id":1,"reason":"road"}`, `"1"`, http.StatusNotFound},
		{ann, `{"category_id":1,"reason":"road"}`, `"1"`, http.StatusBadRequest},
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

// Reporters correct the words and the place of their own pending reports; for everybody
// else there is no such thing. The history tells that, and neither the words nor who it was.
func TestCorrectOwnReport(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, ben, olga := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident), token(t, "olga", auth.Official)
	rep := s.file(ann, "anonymous")
	path := "/reports/" + rep.ID.String()
	patch := func(who, body, version string) answer {
		return s.do(call{method: "PATCH", path: path, token: who, body: body, headers: map[string]string{"If-Match": version}})
	}
	const corrected = `{"title":" Two lamps ","description":"Since Monday","address":"Jl. Braga 1","latitude":-6.8,"longitude":107.5}`
	for _, tt := range []struct {
		who, body, version string
		want               int
	}{
		{"", corrected, `"1"`, http.StatusUnauthorized},
		{ben, corrected, `"1"`, http.StatusNotFound},
		{olga, corrected, `"1"`, http.StatusBadRequest},
		{ann, `{}`, `"1"`, http.StatusBadRequest},
		{ann, `{"title":" "}`, `"1"`, http.StatusBadRequest},
		{ann, `{"category_id":1}`, `"1"`, http.StatusBadRequest},
		{ann, corrected, `"7"`, http.StatusPreconditionFailed},
		{ann, corrected, `"1"`, http.StatusOK},
		{ann, corrected, `"2"`, http.StatusOK}, // changes nothing
	} {
		if a := patch(tt.who, tt.body, tt.version); a.StatusCode != tt.want {
			t.Errorf("%s at %s: %d, want %d: %s", tt.body, tt.version, a.StatusCode, tt.want, a.body)
		}
	}
	got, a := ok[reportapi.Report](s, call{method: "GET", path: path, token: ann}, http.StatusOK)
	if got.Title != "Two lamps" || got.Description != "Since Monday" || got.Address != "Jl. Braga 1" || *got.Latitude != -6.8 || got.Version != 2 || !got.Mine {
		t.Errorf("corrected to %s", a.body)
	}
	history, a := ok[reportapi.History](s, call{method: "GET", path: path + "/history"}, http.StatusOK)
	if len(history.History) != 2 || *history.History[1].Correction != (reportapi.HistoryCorrection{ByReporter: true, Words: true, Place: true}) {
		t.Errorf("the history is %s", a.body)
	}
	for _, word := range []string{rep.Title, "Two lamps", "Braga", "ann"} {
		if strings.Contains(string(a.body), `"`+word) {
			t.Errorf("the history says %q: %s", word, a.body)
		}
	}
	ok[reportapi.Report](s, call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"in_progress"}`}, http.StatusOK)
	if a := patch(ann, `{"title":"Too late"}`, `"3"`); a.StatusCode != http.StatusConflict || !strings.Contains(string(a.body), "not-pending") {
		t.Errorf("too late: %d %s", a.StatusCode, a.body)
	}
}
