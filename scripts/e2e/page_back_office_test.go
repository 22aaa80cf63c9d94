package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// newForgetful returns a department's system that takes requests of Open311, loses its answer to
// each, and cannot be searched.
func newForgetful(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/servicerequestupdates.xml":
			_, _ = io.WriteString(w, "<service_request_updates/>")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// An operator connects a department's system that loses an answer, finds the report among those
// that differ, and types its number there: nothing differs any more, and officials read the
// number. The screen is whole on a phone and in both languages.
func TestPageBackOffice(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.worker.env["REPORT_SERVICE_URL"] = c.gateway.URL
	c.worker.start()
	far := newForgetful(t)
	type body = map[string]any
	pavel, olga := c.userOf("pavel", "operator"), c.signIn("Olga", "official")
	call := func(method, path string, in, out any) {
		t.Helper()
		if err := pavel.Do(t.Context(), method, path, in, out); err != nil {
			t.Fatal(err)
		}
	}
	call(http.MethodPut, "/reports/departments", body{"departments": []body{{"id": 7, "name": "Lights", "category_ids": []int{2}}}}, nil)
	var made struct{ Key string }
	call(http.MethodPost, "/admin/reports/connections", body{"name": "Lamps", "department_id": 7}, &made)

	page := c.reader(pavel).open("ops/back-office", browser.Width(1280, 900))
	page.do(browser.See(".empty", "No system is connected"), browser.Click("button", "Connect a system"))
	page.checkAccessible("connecting a system")
	page.do(
		browser.Fill("Name", "Works"), browser.Fill("Address", far.URL+"/"), browser.Fill("Key of a connection", made.Key),
		browser.Fill("Street lights", "LIGHT"), browser.Click("dialog button.primary", "Save"), browser.See(".rows strong", "Works"),
	)
	report := file(t, c.signIn("Ana", "resident"), "Dark crossing")
	execute(t, c.notificationDB, `update open311_targets set polled_at = null`)
	await(t, c.notificationDB, "the answer is lost", `select count(*) = 1 from deliveries where channel = 'open311' and last_class = 'uncertain'`)
	execute(t, c.notificationDB, `update deliveries set due_at = now() where channel = 'open311'`)
	await(t, c.notificationDB, "an operator has to decide", `select count(*) = 1 from open311_requests where unknown`)
	execute(t, c.notificationDB, `update open311_requests set created_at = now() - interval '11 minutes'`)

	page.do(browser.Reload(), browser.See(".rows p", "It may have arrived"))
	page.checkAccessible("back office")
	page.do(phone)
	page.checkNarrow("back office")
	page.do(inIndonesian, browser.See(".rows p", "Mungkin sudah sampai"))
	page.checkNarrow("back office, in Indonesian")
	page.do(browser.Click(".rows button", "Ubah"))
	page.checkNarrow("changing a system, in Indonesian")
	page.do(browser.Press("\x1b"), browser.Width(1280, 900))

	page.do(browser.Click(".rows button", "Tentukan"))
	page.checkAccessible("deciding about a report")
	page.do(browser.Fill("Nomornya di sana", "W-1"), browser.Click("dialog button.primary", "Sudah sampai"), browser.See(".empty", "Kota dan sistemnya sama"))
	page.checkFaults()
	await(t, c.reportDB, "report-service has the number", `select count(*) = 1 from external_refs where number = 'W-1'`)
	desk := c.reader(olga).open("queue?report=" + report.ID.String())
	desk.do(browser.See(".desk-detail .meta span", "Lamps: W-1"))
	desk.checkFaults()
}

// await waits until a query answers true.
func await(t *testing.T, db *pgxpool.Pool, what, query string) {
	t.Helper()
	eventually.True(t, what, func() bool {
		var is bool
		if err := db.QueryRow(t.Context(), query).Scan(&is); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", what, err))
		}
		return is
	})
}
