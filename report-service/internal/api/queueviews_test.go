package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// Each official has views of their own, in the order that they gave them, up to a
// limit; names are different.
func TestViewsOfTheQueue(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	olga, oskar := token(t, "olga", auth.Official), token(t, "oskar", auth.Official)
	set := func(token, body string) []reportapi.View {
		t.Helper()
		views, _ := ok[reportapi.Views](s, call{method: "PUT", path: "/reports/views", token: token, body: body}, http.StatusOK)
		return views.Views
	}
	get := func(token string) []reportapi.View {
		t.Helper()
		views, _ := ok[reportapi.Views](s, call{method: "GET", path: "/reports/views", token: token}, http.StatusOK)
		return views.Views
	}

	want := []reportapi.View{{Name: "Roads, mine", Filters: "category=1&assignee=me"}, {Name: "All", Filters: ""}}
	got := set(olga, `{"views":[{"name":"Roads, mine","filters":"category=1&assignee=me"},{"name":" All ","filters":""}]}`)
	if !slices.Equal(got, want) || !slices.Equal(get(olga), want) {
		t.Errorf("olga has %v, want %v", got, want)
	}
	if views := get(oskar); len(views) != 0 {
		t.Errorf("oskar has %v, want none", views)
	}
	set(oskar, `{"views":[{"name":"All","filters":"status=all"}]}`)
	if views := set(olga, `{"views":[{"name":"All","filters":"status=all"}]}`); len(views) != 1 {
		t.Errorf("olga has %v after replacing them", views)
	}

	many := strings.Repeat(`{"name":"x","filters":""},`, 31)
	for what, body := range map[string]string{
		"the same name twice": `{"views":[{"name":"All","filters":""},{"name":"All ","filters":""}]}`,
		"a blank name":        `{"views":[{"name":"  ","filters":""}]}`,
		"a long name":         `{"views":[{"name":"` + strings.Repeat("n", 61) + `","filters":""}]}`,
		"long filters":        `{"views":[{"name":"All","filters":"` + strings.Repeat("n", 1001) + `"}]}`,
		"filters of no query": `{"views":[{"name":"All","filters":"a b"}]}`,
		"too many":            `{"views":[` + strings.TrimSuffix(many, ",") + `]}`,
	} {
		if a := s.do(call{method: "PUT", path: "/reports/views", token: olga, body: body}); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d, want 400", what, a.StatusCode)
		}
	}
	s.wantStatus(http.StatusForbidden, call{method: "GET", path: "/reports/views", token: token(t, "ann", auth.Resident)})
	if views := get(olga); len(views) != 1 {
		t.Errorf("olga has %v after refusals, want what there was", views)
	}
}
