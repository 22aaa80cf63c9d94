package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/event"
)

// draft returns a report that the API accepts.
func draft(title string) client.NewReport {
	lat, lon := -6.9147, 107.6098
	return client.NewReport{
		Title: title, Description: "Since Monday.", CategoryID: 2,
		Latitude: &lat, Longitude: &lon, Address: "Jl. Asia Afrika 8", PrivacyLevel: "public",
	}
}

// setAssets puts a lamp where draft's reports are.
func (c *stack) setAssets(operator *client.Client) {
	c.t.Helper()
	lamp := json.RawMessage(`{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"code":"L-7","name":"Lamp 7"},
		"geometry":{"type":"Point","coordinates":[107.6098,-6.9147]}}]}`)
	if err := operator.Do(c.t.Context(), http.MethodPut, "/reports/assets/lamps?category=2", lamp, nil, "Content-Type", "application/geo+json"); err != nil {
		c.t.Fatalf("upload things: %v", err)
	}
}

// setAreas draws two areas, of which the one in the south has what draft returns.
func (c *stack) setAreas(operator *client.Client) {
	t := c.t
	t.Helper()
	var features []string
	for code, south := range map[string]int{"south": -10, "north": -6} {
		features = append(features, fmt.Sprintf(`{"type":"Feature","properties":{"code":%[1]q,"names":{"en":"The %[1]s","id":"Bagian %[1]s"}},
			"geometry":{"type":"Polygon","coordinates":[[[100,%[2]d],[110,%[2]d],[110,%[3]d],[100,%[3]d],[100,%[2]d]]]}}`, code, south, south+4))
	}
	slices.Sort(features)
	file := json.RawMessage(`{"type":"FeatureCollection","features":[` + strings.Join(features, ",") + `]}`)
	if err := operator.Do(t.Context(), http.MethodPut, "/reports/areas", file, nil, "If-Match", "*", "Content-Type", "application/geo+json"); err != nil {
		t.Fatalf("draw areas: %v", err)
	}
	// There is no report yet that the job would have to find.
	if _, err := c.reportDB.Exec(t.Context(), `update area_list set located = revision`); err != nil {
		t.Fatal(err)
	}
}

// file files a report as user.
func file(t *testing.T, user *client.Client, title string) client.Report {
	t.Helper()
	report, err := user.CreateReport(t.Context(), draft(title), "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatalf("file a report: %v", err)
	}
	return report
}

// vote votes as user and returns what the reporter is to see.
func vote(t *testing.T, user *client.Client, report client.Report, voteType string) sight {
	t.Helper()
	result, err := user.Vote(t.Context(), report.ID, voteType)
	if err != nil {
		t.Fatalf("vote: %v", err)
	}
	return sight{voted, report.ID, result.Version}
}

// move changes the status as official and returns what the reporter is to see.
func move(t *testing.T, official *client.Client, report client.Report, status, note string) sight {
	t.Helper()
	changed, err := official.SetStatus(t.Context(), report.ID, status, note)
	if err != nil {
		t.Fatalf("change status: %v", err)
	}
	return sight{moved, report.ID, changed.Version}
}

// correct has an official put a report into another category and to another place, and
// returns what the reporter is to see.
func correct(t *testing.T, official *client.Client, report client.Report) sight {
	t.Helper()
	var now client.Report
	body := map[string]any{"category_id": report.CategoryID%3 + 1, "latitude": -6.9, "longitude": 107.6, "address": "Jl. Braga 1", "reason": "It is there"}
	if err := official.Do(t.Context(), http.MethodPatch, "/reports/"+report.ID.String(), body, &now); err != nil {
		t.Fatalf("correct: %v", err)
	}
	return sight{string(event.CorrectedKey), report.ID, now.Version}
}

// correctOwn changes the words and the place of somebody's own pending report.
func correctOwn(t *testing.T, reporter *client.Client, report client.Report) {
	t.Helper()
	body := map[string]any{"title": report.Title + "!", "latitude": -6.91, "longitude": 107.61}
	if err := reporter.Do(t.Context(), http.MethodPatch, "/reports/"+report.ID.String(), body, nil); err != nil {
		t.Fatalf("correct one's own report: %v", err)
	}
}

// say replies to everybody as official, and returns what the reporter is to see.
func say(t *testing.T, official *client.Client, report client.Report, text string) sight {
	t.Helper()
	if err := official.Do(t.Context(), http.MethodPost, "/reports/"+report.ID.String()+"/replies", map[string]string{"text": text}, nil); err != nil {
		t.Fatalf("reply: %v", err)
	}
	changed, err := official.Report(t.Context(), report.ID)
	if err != nil {
		t.Fatalf("read a report: %v", err)
	}
	return sight{moved, report.ID, changed.Version}
}

// giveVerdict has the reporter of a resolved report say whether it is fixed. They see
// nothing of it themselves.
func giveVerdict(t *testing.T, reporter *client.Client, report client.Report, fixed bool, text string) {
	t.Helper()
	body := map[string]any{"fixed": fixed, "text": text}
	if err := reporter.Do(t.Context(), http.MethodPut, "/reports/"+report.ID.String()+"/verdict", body, nil); err != nil {
		t.Fatalf("give a verdict: %v", err)
	}
}

// keepResolved has an official keep a disputed report resolved.
func keepResolved(t *testing.T, official *client.Client, report client.Report, note string) {
	t.Helper()
	if err := official.Do(t.Context(), http.MethodPost, "/reports/"+report.ID.String()+"/verdict/decision", map[string]string{"note": note}, nil); err != nil {
		t.Fatalf("keep a report resolved: %v", err)
	}
}

// sightOf returns what the officials are to see of a new report.
func sightOf(report client.Report) sight { return sight{created, report.ID, report.Version} }

// token returns a signed token with the usual claims, some of them replaced.
func token(replace jwt.MapClaims) string {
	claims := jwt.MapClaims{
		"iss": issuer, "aud": audience, "sub": "somebody", "name": "Somebody", "role": "resident",
		"exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range replace {
		claims[name] = value
	}
	return must(jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret)))
}

// userOf returns a client of the user called id, without asking the issuer.
func (c *stack) userOf(id, role string) *client.Client {
	return c.As(id, token(jwt.MapClaims{"sub": id, "role": role}))
}

// connect gives all reports to a department, and returns a connection of it, with the scope
// private and a number at one of them.
func (c *stack) connect(numbered uuid.UUID) *client.Client {
	c.t.Helper()
	execute(c.t, c.reportDB, `insert into departments (id, name) values (1, 'Lighting') on conflict do nothing`)
	execute(c.t, c.reportDB, `update reports set department_id = 1`)
	var made reportapi.MadeConnection
	request := reportapi.NewConnection{Name: "Work orders", DepartmentID: 1, Private: true}
	if err := c.userOf("connects", "operator").Do(c.t.Context(), http.MethodPost, "/admin/reports/connections", request, &made); err != nil {
		c.t.Fatalf("make a connection: %v", err)
	}
	connection := c.As(made.ID.String(), made.Key)
	ref := reportapi.NewExternalRef{Number: "WO-1", State: "Crew booked"}
	if err := connection.Do(c.t.Context(), http.MethodPut, "/reports/"+numbered.String()+"/external-ref", ref, nil); err != nil {
		c.t.Fatalf("set a number: %v", err)
	}
	return connection
}

const officeOfFirm = "office@lampu.test"

// sendToFirm has an official of the department that connect makes send a report to a firm. It
// returns the firm, who has the link.
func (c *stack) sendToFirm(report uuid.UUID) *client.Client {
	c.t.Helper()
	official := c.userOf("sends", "official")
	var set reportapi.Firms
	firms := reportapi.NewFirms{Firms: []reportapi.NewFirm{{Name: "Lampu Jaya", Address: officeOfFirm}}}
	err := official.Do(c.t.Context(), http.MethodPut, "/reports/firms?department_id=1", firms, &set)
	if err == nil {
		err = official.Do(c.t.Context(), http.MethodPost, "/reports/"+report.String()+"/firm", reportapi.FirmForwarding{FirmID: set.Firms[0].ID}, nil)
	}
	var job uuid.UUID
	var link string
	if err == nil {
		err = c.reportDB.QueryRow(c.t.Context(), `select id, link from firm_jobs where report_id = $1`, report).Scan(&job, &link)
	}
	if err != nil {
		c.t.Fatalf("send a report to a firm: %v", err)
	}
	return c.As("", must(c.keyring.Open(job, link)))
}

// update sends an update by Open311, which somebody with a name and an address has written,
// for a connection. It leaves the status as it is. update returns its id.
func (c *stack) update(base string, connection *client.Client, report uuid.UUID, words, name, mail string) string {
	c.t.Helper()
	form := url.Values{
		"api_key": {connection.Token()}, "service_request_id": {report.String()}, "update_id": {name}, "status": {"INTERNAL_REFERRAL"}, "description": {words},
		"email": {mail}, "first_name": {name}, "last_name": {name}, "phone": {name}, "media_url": {"https://fms.example/" + name},
	}
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, base+"/open311/v2/servicerequestupdates.json", strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	var taken []struct {
		ID string `json:"update_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&taken); err != nil || res.StatusCode != http.StatusOK || len(taken) != 1 {
		c.t.Fatalf("send an update: %s, %v", res.Status, err)
	}
	return taken[0].ID
}
