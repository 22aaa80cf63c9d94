package postgres_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// The operator of these tests.
var pavel = report.Official{ID: "pavel", Name: "Pavel"}

// audited returns the audit of settings, the newest first.
func (f *fixture) audited() string {
	f.t.Helper()
	changes, err := f.desk.SettingChanges(f.t.Context(), 100)
	if err != nil {
		f.t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		detail, err := json.Marshal(c.Detail)
		if err != nil {
			f.t.Fatal(err)
		}
		lines = append(lines, c.By.ID+" "+c.By.Name+" "+c.Setting+" "+string(detail))
	}
	return strings.Join(lines, "\n")
}

// Each change of a setting is in the audit, with who made it and what changed; saving what is
// there is no change, and a refused one leaves nothing. An erasure takes the person out.
func TestSettingsAreAudited(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lights := report.Department{ID: 7, Name: "Lights", Categories: []int32{3, 2}}
	for _, departments := range [][]report.Department{
		{lights, {ID: 8, Name: "Roads"}},
		{{ID: 8, Name: "Roads"}, {ID: 7, Name: "Lights", Categories: []int32{2, 3}}}, // the same
		{{ID: 7, Name: "Lights", Categories: []int32{2}}, {ID: 9, Name: "Parks"}},
	} {
		if err := f.desk.SetDepartments(t.Context(), departments, pavel); err != nil {
			t.Fatal(err)
		}
	}
	wantKind(t, f.desk.SetDepartments(t.Context(), []report.Department{{ID: 7, Name: "Lights", Categories: []int32{999}}}, pavel), "invalid")
	days := calendar.AlwaysOpen()
	days.Week[time.Sunday] = nil
	days.Holidays = []calendar.Date{{Year: 2026, Month: 12, Day: 25}}
	for _, targets := range []map[int32]time.Duration{{2: 5 * time.Hour}, {2: 5 * time.Hour}, {3: 5 * time.Hour}} {
		if err := f.city.SetCalendar(t.Context(), days, targets, pavel); err != nil {
			t.Fatal(err)
		}
	}
	wantKind(t, f.city.SetCalendar(t.Context(), calendar.AlwaysOpen(), map[int32]time.Duration{999: time.Hour}, pavel), "invalid")
	want := `pavel Pavel calendar {"targets":[2,3]}
pavel Pavel calendar {"holidays_added":["2026-12-25"],"targets":[2],"weekdays":[0]}
pavel Pavel departments {"added":[9],"changed":[7],"removed":[8]}
pavel Pavel departments {"added":[7,8]}`
	if got := f.audited(); got != want {
		t.Errorf("the audit is\n%s\nwant\n%s", got, want)
	}
	if _, err := f.categories.Replace(t.Context(), []report.Category{named(2, "Lamps")}, report.Versions{}, pavel); err != nil {
		t.Fatal(err)
	}
	if got := f.audited(); !strings.HasPrefix(got, `pavel Pavel categories {"added":0,"changed":1,`) {
		t.Errorf("the audit is\n%s\nwant categories first", got)
	}
	f.erase(f.newEraser(), pavel.ID)
	if got := f.audited(); strings.Contains(strings.ToLower(got), "pavel") || strings.Count(got, "\n") != 4 {
		t.Errorf("after an erasure the audit is\n%s", got)
	}
}
