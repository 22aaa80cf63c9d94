package report_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Each list counts the choices of its own filter as if none was chosen there.
func TestCount(t *testing.T) {
	t.Parallel()
	olga := report.Official{ID: "olga", Name: "Olga"}
	shares := []report.GroupCount{
		{Status: report.Pending, Category: 1, Department: 7, Count: 1},
		{Status: report.Pending, Category: 2, Department: 7, Assignee: olga, Count: 10},
		{Status: report.Resolved, Category: 2, Department: 7, Assignee: olga, Count: 100},
		{Status: report.Resolved, Category: 3, Count: 1000},
	}
	all := report.Count(report.Filter{}, shares)
	if all.Total != 1111 || all.Departments[0] != 1000 || all.Assignees[olga] != 110 || all.Assignees[report.Official{}] != 1001 {
		t.Errorf("without a filter: %+v", all)
	}
	got := report.Count(report.Filter{Statuses: []report.Status{report.Pending}, Assignee: new("olga")}, shares)
	if got.Total != 10 {
		t.Errorf("total %d, want 10", got.Total)
	}
	if want := map[report.Status]int64{report.Pending: 10, report.Resolved: 100}; !maps.Equal(got.Statuses, want) {
		t.Errorf("statuses %v, want %v", got.Statuses, want)
	}
	if want := map[int32]int64{2: 10}; !maps.Equal(got.Categories, want) {
		t.Errorf("categories %v, want %v", got.Categories, want)
	}
	if want := map[report.Official]int64{{}: 1, olga: 10}; !maps.Equal(got.Assignees, want) {
		t.Errorf("assignees %v, want %v", got.Assignees, want)
	}
}

func TestCheckDepartments(t *testing.T) {
	t.Parallel()
	roads, parks := report.Department{ID: 1, Name: "Roads", Categories: []int32{1, 2}}, report.Department{ID: 2, Name: "Parks", Categories: []int32{5}}
	for field, departments := range map[string][]report.Department{
		"":                              {roads, parks},
		"/departments/1/id":             {roads, {ID: 1, Name: "Parks"}},
		"/departments/1/name":           {roads, {ID: 2, Name: "Roads"}},
		"/departments/0/name":           {{ID: 3}},
		"/departments/1/category_ids/0": {roads, {ID: 2, Name: "Parks", Categories: []int32{2}}},
	} {
		err := report.CheckDepartments(departments)
		wrong, _ := errors.AsType[*fault.Error](err)
		if (err == nil) != (field == "") || err != nil && wrong.Field != field {
			t.Errorf("CheckDepartments(%+v): %v, want a fault at %q", departments, err, field)
		}
	}
}
