package e2e

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A city has a name, languages and categories of its own by variables and one request,
// and learns at the start what it has not translated yet.
func TestCityOfItsOwn(t *testing.T) {
	t.Parallel()
	c := prepareStack(t)
	for _, p := range []*process{c.report, c.notification} {
		p.env["CITY_NAME"], p.env["CITY_LANGUAGES"] = "Kota Bogor", "id,en,nl"
	}
	c.start()
	eventually.True(t, "the log says what has no Dutch text", func() bool {
		return slices.ContainsFunc(c.report.log.messages("categories have no text in a language of the city, residents read that in its first language: an operator adds it in the console"), func(line string) bool {
			return strings.Contains(line, `"language":"nl"`) && strings.Contains(line, `"categories":11`) && strings.Contains(line, "CITY_LANGUAGES")
		})
	})

	olga, ana, pavel := c.signIn("Olga", "official"), c.signIn("Ana", "resident"), c.signIn("Pavel", "operator")
	report := file(t, ana, "Dark crossing")
	const lamps = "Lampu jalan dan lampu lalu lintas"
	if report.CategoryName != lamps {
		t.Errorf("the report's category is %q, want %q", report.CategoryName, lamps)
	}
	notified := func() string {
		page, err := olga.Notifications(t.Context(), "", 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range page.Notifications {
			if n.ReportID == report.ID {
				return n.CategoryName
			}
		}
		return ""
	}
	eventually.True(t, "the official is notified in the city's first language", func() bool { return notified() == lamps })

	type text map[string]string
	texts := func(id, en, nl, hint string) []text {
		return []text{{"language": "id", "name": id, "hint": hint}, {"language": "en", "name": en, "hint": hint}, {"language": "nl", "name": nl, "hint": hint}}
	}
	list := map[string]any{"categories": []map[string]any{
		{"accepts_reports": false, "texts": texts("Bau gas", "Gas", "Gaslucht", "112")},
		{"id": 2, "texts": texts("Lampu", "Lamps", "Lampen", "")},
	}}
	var answer struct {
		Categories []struct {
			ID int32 `json:"id"`
		} `json:"categories"`
	}
	if err := pavel.Do(t.Context(), http.MethodPut, "/reports/categories", list, &answer, "If-Match", `"1"`); err != nil {
		t.Fatal(err)
	}
	if again, err := olga.Report(t.Context(), report.ID); err != nil || again.CategoryName != "Lampu" || notified() != lamps {
		t.Errorf("the report has %q and its notification %q (error %v), want the new name and the old one", again.CategoryName, notified(), err)
	}
	in := draft("Gas")
	in.CategoryID = answer.Categories[0].ID
	_, err := ana.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Name() != "signpost" || refused.Detail != "112" {
		t.Errorf("a signpost answers %v, want 409 with its hint", err)
	}
	for url, want := range map[string]string{
		c.report.url() + "/reports/" + report.ID.String() + "/preview": `<meta property="og:site_name" content="Kota Bogor">`,
		c.gateway.URL + "/manifest.webmanifest":                        `"name":"Kota Bogor"`,
		c.gateway.URL + "/config.json":                                 `"city":{"name":"Kota Bogor","languages":["id","en","nl"],"links":{}}`,
		c.gateway.URL + "/":                                            "<title>Kota Bogor</title>",
	} {
		if html := htmlAt(t, url, ""); !strings.Contains(html, want) {
			t.Errorf("%s has no %s:\n%s", url, want, html)
		}
	}
}
