package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// Operators see who of the city's staff has used the service and in which role, and
// nothing of residents.
func TestPeople(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.file(token(t, "ann", auth.Resident), "public")
	s.queue(token(t, "olga", auth.Official), "")
	pavel := token(t, "pavel", auth.Operator)
	var people []reportapi.Member
	eventually.True(t, "both are recorded", func() bool {
		found, _ := ok[reportapi.People](s, call{method: "GET", path: "/admin/reports/people", token: pavel}, http.StatusOK)
		people = found.People
		return len(people) == 2
	})
	roles := make(map[string]reportapi.MemberRole)
	for _, m := range people {
		roles[m.Name] = m.Role
		if !m.SeenAt.Equal(m.SeenAt.Truncate(time.Hour)) || time.Since(m.SeenAt) > 2*time.Hour {
			t.Errorf("%s was seen at %s, want the last hour", m.Name, m.SeenAt)
		}
	}
	if len(roles) != 2 || roles["olga"] != reportapi.MemberRoleOfficial || roles["pavel"] != reportapi.MemberRoleOperator {
		t.Errorf("people are %v, want an official and an operator", roles)
	}
	// Another role is known at once.
	s.queue(token(t, "pavel", auth.Official), "")
	eventually.True(t, "the operator is an official", func() bool {
		found, _ := ok[reportapi.People](s, call{method: "GET", path: "/admin/reports/people", token: token(t, "otto", auth.Auditor)}, http.StatusOK)
		for _, m := range found.People {
			if m.Name == "pavel" && m.Role == reportapi.MemberRoleOfficial {
				return true
			}
		}
		return false
	})
}
