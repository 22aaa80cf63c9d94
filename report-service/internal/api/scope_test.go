package api_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// tokenOf returns the token of somebody who works for departments.
func tokenOf(t testing.TB, name string, role auth.Role, departments ...string) string {
	t.Helper()
	return sign(t, jwt.MapClaims{"sub": name, "name": name, "role": role, "departments": departments, "exp": time.Now().Add(time.Hour).Unix()})
}

// A department has a code that is made of its name, unless an operator gives it one, and
// keeps it under another name.
func TestDepartmentsHaveCodes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	pavel := token(t, "pavel", auth.Operator)
	put := func(body string) (codes []string) {
		t.Helper()
		list, _ := ok[reportapi.Departments](s, call{method: "PUT", path: "/reports/departments", token: pavel, body: body}, http.StatusOK)
		for _, d := range list.Departments {
			codes = append(codes, d.Code)
		}
		return codes
	}
	for _, tt := range []struct {
		body string
		want []string
	}{
		{`{"departments":[{"id":1,"name":"Roads & Lights","category_ids":[]},{"id":2,"name":"Parks","code":"dept_7","category_ids":[]}]}`, []string{"roads-lights", "dept_7"}},
		{`{"departments":[{"id":1,"name":"Streets","category_ids":[]},{"id":2,"name":"Roads, lights","category_ids":[]},{"id":3,"name":"roads lights","category_ids":[]}]}`, []string{"roads-lights", "dept_7", "roads-lights-3"}},
		{`{"departments":[{"id":1,"name":"Streets","code":"dept_7","category_ids":[]},{"id":2,"name":"Parks","code":"roads-lights","category_ids":[]}]}`, []string{"dept_7", "roads-lights"}},
		{`{"departments":[{"id":4,"name":"道路","category_ids":[]}]}`, []string{"department"}},
	} {
		if got := put(tt.body); !slices.Equal(got, tt.want) {
			t.Errorf("%s: codes %q, want %q", tt.body, got, tt.want)
		}
	}
	put(`{"departments":[{"id":1,"name":"Roads","category_ids":[]},{"id":2,"name":"Parks","category_ids":[]}]}`)
	for body, pointer := range map[string]string{
		`{"departments":[{"id":1,"name":"A","code":"x","category_ids":[]},{"id":2,"name":"B","code":"x","category_ids":[]}]}`: "/departments/1/code",
		`{"departments":[{"id":1,"name":"A","code":"parks","category_ids":[]},{"id":2,"name":"B","category_ids":[]}]}`:        "/departments",
		`{"departments":[{"id":1,"name":"A","code":"Roads and","category_ids":[]}]}`:                                          "/departments/0/code",
	} {
		s.wantProblem(refusal{"", call{method: "PUT", path: "/reports/departments", token: pavel, body: body}, http.StatusBadRequest, "invalid-input", []string{pointer}})
	}
}

// An official may forward a report to another department with a reason, which officials read,
// and nobody is assigned to it then. Where they see the whole city, that is what they see.
func TestForwardToAnotherDepartment(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ok[reportapi.Departments](s, call{method: "PUT", path: "/reports/departments", token: token(t, "pavel", auth.Operator),
		body: `{"departments":[{"id":1,"name":"Roads","category_ids":[2]},{"id":2,"name":"Parks","category_ids":[]}]}`}, http.StatusOK)
	olga := tokenOf(t, "olga", auth.Official, "roads", "elsewhere")
	path := "/reports/" + s.file(token(t, "ann", auth.Resident), "public").ID.String()
	ok[reportapi.Work](s, call{method: "PUT", path: path + "/assignment", token: olga, body: `{"assignee":{"id":"olga","name":"olga"}}`}, http.StatusOK)
	forward := func(body string) call {
		return call{method: "POST", path: path + "/forward", token: olga, body: body}
	}
	for body, pointer := range map[string]string{
		`{"department_id":1,"reason":"theirs"}`: "/department_id",
		`{"department_id":9,"reason":"theirs"}`: "/department_id",
		`{"department_id":2,"reason":" "}`:      "/reason",
	} {
		s.wantProblem(refusal{"", forward(body), http.StatusBadRequest, "invalid-input", []string{pointer}})
	}
	if a := s.do(forward(`{"department_id":2,"reason":"It is in the park"}`)); a.StatusCode != http.StatusNoContent {
		t.Fatalf("forward: status %d %s", a.StatusCode, a.body)
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	act := work.Acts[len(work.Acts)-1]
	if work.Report.DepartmentID != 2 || work.Report.Routed || work.Report.Assignee.ID != "" || act.Action != "forward" || act.Text != "It is in the park" || act.DepartmentID != 2 {
		t.Errorf("got report %+v and act %+v, want it forwarded to 2 and assigned to nobody", work.Report, act)
	}
	scope, _ := ok[reportapi.OwnScope](s, call{method: "GET", path: "/reports/me", token: olga}, http.StatusOK)
	if scope.Scope != "city" || !scope.Moderator || len(scope.Departments) != 1 || scope.Departments[0].Name != "Roads" || !slices.Equal(scope.Unknown, []string{"elsewhere"}) {
		t.Errorf("got scope %+v, want that of the city, with Roads, and one that is unknown", scope)
	}
}
