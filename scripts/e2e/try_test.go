package e2e

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/openapitest"
	"github.com/cityconnect/cityconnect/platform/testing/short"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

var updateTry = flag.Bool("update-try", false, "record the city that can be looked at without a server")

//go:embed testdata/town.json
var townReports []byte

// A townReport is a report of the recorded city, with what became of it. Its place is in
// ten thousandths of a degree from the middle of Bogor.
type townReport struct {
	Title, Text, Address string
	Category             int32
	North, East          float64
	Anonymous            bool
	Votes                int
	Status, Note         string
	Question, Comment    string
}

// A recording is what app/src/try/city.ts answers with.
type recording struct {
	At         time.Time                    `json:"at"`
	People     map[string]json.RawMessage   `json:"people"`
	Categories map[string]json.RawMessage   `json:"categories"`
	Answers    map[string]json.RawMessage   `json:"answers"`
	Inbox      map[string]json.RawMessage   `json:"inbox"`
	Reports    []map[string]json.RawMessage `json:"reports"`
}

// The operations whose answers the city has as they were recorded; it makes the others.
var recordedAnswers = regexp.MustCompile(`^/(admin/.*|areas|me/.*|guests|` +
	`reports/(areas|assets|calendar|categories(/changes)?|departments|templates|views|moves|numbers|queue/(abuse|photos)))$`)

// TestTryRecording holds what is recorded of a city to the documents; -update-try records
// it again, from running services.
func TestTryRecording(t *testing.T) {
	t.Parallel()
	if *updateTry {
		recordTown(t)
	}
	var r recording
	file := filepath.Join(root(), "notification-service", "internal", "web", "app", "src", "try", "city.json")
	body := must(os.ReadFile(file))
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Reports) != 50 || len(body) > 300_000 {
		t.Errorf("%d reports in %d bytes, want 50 in 300,000 at most", len(r.Reports), len(body))
	}
	var documents []*openapitest.Document
	for _, service := range []string{"report-service", "notification-service"} {
		documents = append(documents, openapitest.New(filepath.Join(root(), "docs", "openapi", service+".yaml")))
	}
	check := func(path, answer string) {
		if !slices.ContainsFunc(documents, func(d *openapitest.Document) bool { return d.CheckBody(t, path, []byte(answer)) }) {
			t.Errorf("no document has %s, which is recorded", path)
		}
	}
	for template, answer := range r.Answers {
		check(template, string(answer))
	}
	for _, answer := range r.Categories {
		check("/categories", string(answer))
	}
	for _, each := range r.Reports {
		check("/reports/{id}", string(each["report"]))
		check("/reports/{id}/work", string(each["work"]))
		check("/reports/{id}/history", `{"history":`+string(each["history"])+`}`)
		check("/reports/{id}/dialogue", `{"items":`+string(each["dialogue"])+`}`)
	}
}

// recordTown lets people live in a city, and writes what its services answer.
func recordTown(t *testing.T) { //nolint:funlen // what people do, in its order
	t.Helper()
	c := prepareStack(t)
	c.switchCommentsOn()
	for _, p := range []*process{c.report, c.notification} {
		p.env["CITY_LANGUAGES"] = "id,en"
	}
	c.start()
	c.startPhotoWorker()
	sari, budi, rini := c.signIn("Sari", "resident"), c.signIn("Budi", "official"), c.signIn("Rini", "operator")
	neighbours := make([]*client.Client, 0, 9)
	for _, name := range []string{"Agus", "Dewi", "Eko", "Fitri", "Hendra", "Intan", "Joko", "Kartika", "Lestari"} {
		neighbours = append(neighbours, c.signIn(name, "resident"))
	}
	do := func(user *client.Client, method, path, body string, header ...string) {
		t.Helper()
		if err := user.Do(t.Context(), method, path, json.RawMessage(body), nil, header...); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	do(rini, http.MethodPut, "/reports/departments", `{"departments":[
		{"id":1,"name":"Dinas Pekerjaan Umum","category_ids":[1,6,7,8]},{"id":2,"name":"Dinas Penerangan Jalan","category_ids":[2]},
		{"id":3,"name":"Dinas Lingkungan Hidup","category_ids":[3,4,5,9]}]}`)
	do(budi, http.MethodPut, "/reports/templates", `{"templates":[
		{"id":1,"title":"Sedang ditangani","text":"Terima kasih. Petugas kami sedang menanganinya.","status":"in_progress"},
		{"id":2,"title":"Repaired","text":"It has been repaired. Thank you for telling us.","status":"resolved"}]}`)
	do(rini, http.MethodPut, "/admin/setup", `{"done":["identity_provider","mail","name","languages","map","categories","departments","areas","calendar","official","backup","alerts"]}`)
	c.setTarget(2, 72)
	other := openOtherSystem(t)
	other.register(c, rini)

	var town []townReport
	if err := json.Unmarshal(townReports, &town); err != nil {
		t.Fatal(err)
	}
	filed := make([]client.Report, len(town))
	const behind = 3 // the city is so many reports behind
	for i := range len(town) + behind {
		if i < len(town) {
			filed[i] = town[i].file(t, i, sari, neighbours)
		}
		if i >= behind {
			town[i-behind].treat(t, filed[i-behind], budi, neighbours[0])
		}
	}
	msg := c.message(event.VoteReceivedKey, uuid.New(), "sari", `{"no": "vote"}`)
	c.publish(c.channel(), event.VoteReceivedKey, msg)
	c.awaitDeadLetter("queue.vote_received", msg.MessageId)
	other.await(len(town))
	eventually.True(t, "officials are notified of each report", func() bool {
		page, err := budi.Notifications(t.Context(), "", len(town))
		return err == nil && len(page.Notifications) == len(town)
	})

	contract := openapitest.New(filepath.Join(root(), "docs", "openapi", "report-service.yaml"))
	messages := openapitest.New(filepath.Join(root(), "docs", "openapi", "notification-service.yaml"))
	part := func(user *client.Client, contract *openapitest.Document, address, name string) json.RawMessage {
		var parts map[string]json.RawMessage
		if body := c.answer(contract, address, user.Token()); body != nil && json.Unmarshal(body, &parts) != nil {
			t.Fatalf("%s is not an object: %s", address, body)
		}
		return parts[name]
	}
	r := recording{At: time.Now(), People: map[string]json.RawMessage{}, Categories: map[string]json.RawMessage{}, Inbox: map[string]json.RawMessage{}}
	for role, user := range map[string]*client.Client{"resident": sari, "official": budi, "operator": rini} {
		r.People[role] = c.answer(messages, c.notification.url()+"/session", user.Token())
		r.Inbox[role] = part(user, messages, c.notification.url()+"/notifications?limit=50", "notifications")
	}
	for _, language := range []string{"en", "id"} {
		var answer json.RawMessage
		if err := sari.Do(t.Context(), http.MethodGet, "/categories?include=retired", nil, &answer, "Accept-Language", language); err != nil {
			t.Fatal(err)
		}
		r.Categories[language] = answer
	}
	for _, report := range filed {
		at := c.report.url() + "/reports/" + report.ID.String()
		each := map[string]json.RawMessage{
			"report": c.answer(contract, at, sari.Token()), "work": c.answer(contract, at+"/work", budi.Token()),
			"history": part(sari, contract, at+"/history", "history"), "comments": part(sari, contract, at+"/comments", "comments"),
			"dialogue": part(sari, contract, at+"/dialogue", "items"),
		}
		if each["dialogue"] == nil { // those of others are not hers to read
			each["dialogue"] = json.RawMessage("[]")
		}
		r.Reports = append(r.Reports, each)
	}
	r.Answers = c.readAnswers(map[string]*client.Client{"resident": sari, "official": budi, "operator": rini})
	for template, answer := range r.Answers {
		if !recordedAnswers.MatchString(template) || strings.HasSuffix(template, "/data") {
			delete(r.Answers, template)
			continue
		}
		r.Answers[template] = json.RawMessage(strings.NewReplacer(
			other.server.URL, "https://receiver.example.org", strings.TrimPrefix(other.server.URL, "http://"), "receiver.example.org",
		).Replace(string(answer)))
	}
	writeRecording(t, r, "try", "city.json")
}

// file files the report with that number, and has people vote for it.
func (r townReport) file(t *testing.T, number int, sari *client.Client, neighbours []*client.Client) client.Report {
	t.Helper()
	reporter := neighbours[number%len(neighbours)]
	if r.Question != "" || number%8 == 5 {
		reporter = sari
	}
	in := client.NewReport{Title: r.Title, Description: r.Text, CategoryID: r.Category, Address: r.Address, PrivacyLevel: "public"}
	in.Latitude, in.Longitude = new(-6.5950+r.North/10_000), new(106.7995+r.East/10_000)
	if r.Anonymous {
		in.PrivacyLevel = "anonymous"
	}
	report, err := reporter.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatalf("file a report: %v", err)
	}
	for _, voter := range neighbours[:r.Votes] {
		if voter != reporter {
			vote(t, voter, report, "upvote")
		}
	}
	return report
}

// treat has the official do what became of the report.
func (r townReport) treat(t *testing.T, report client.Report, budi, neighbour *client.Client) {
	t.Helper()
	if r.Comment != "" {
		body := json.RawMessage(`{"text":"` + r.Comment + `","anonymous":false}`)
		if err := neighbour.Do(t.Context(), http.MethodPost, "/reports/"+report.ID.String()+"/comments", body, nil, "Idempotency-Key", uuid.NewString()); err != nil {
			t.Fatalf("comment: %v", err)
		}
	}
	if r.Question != "" {
		askReporter(t, budi, report, r.Question)
	}
	if r.Status == "resolved" {
		move(t, budi, report, "in_progress", "")
	}
	if r.Status != "" {
		move(t, budi, report, r.Status, r.Note)
	}
}

// buildTry builds the folder, and returns where it is.
func buildTry(t *testing.T) string {
	t.Helper()
	short.Skip(t)
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("no npm here")
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root(), "scripts", "page.sh"), "types").CombinedOutput()
	if err != nil {
		t.Fatalf("install the page's packages: %v\n%s", err, out)
	}
	if strings.HasPrefix(string(out), "skipped") {
		t.Skipf("%s", out)
	}
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), npm, "run", "--silent", "try", "--", "--outDir", folder)
	build.Dir = filepath.Join(root(), "notification-service", "internal", "web", "app")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the folder: %v\n%s", err, out)
	}
	return folder
}

// A browser opens the city from a folder, and requests nothing from elsewhere: the tour of
// each role has six steps in both languages, and one files, answers, votes and moves reports
// as with the services.
func TestTryWithoutAServer(t *testing.T) {
	t.Parallel()
	folder := buildTry(t)
	size := 0
	if err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			size += int(must(entry.Info()).Size())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", size)
	if size > 3_000_000 {
		t.Errorf("the folder has %d bytes, want 3,000,000 at most", size)
	}
	b, err := shell()
	if err != nil {
		t.Fatalf("browser: %v", err)
	}
	person, err := b.Person("file://"+folder+"/index.html#", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(person.Close)
	page := reader{t, person}.open("", browser.Width(1280, 900))
	requests := must(page.Requests())
	page.do(browser.Reload(), live)
	for _, words := range []map[string]string{
		{"language": "English", "resident": "Resident", "official": "Official", "next": "Next"},
		{"language": "Bahasa Indonesia", "resident": "Warga", "official": "Petugas", "next": "Lanjut"},
	} {
		page.do(browser.Click(".tour button", words["language"]).Then(browser.See(".tour button", words["resident"])))
		for _, role := range []string{words["resident"], words["official"], "Operator"} {
			page.do(browser.Click(".tour button", role))
			for number := 1; number <= tourSteps; number++ {
				page.do(tourAt(role, number))
				page.checkFaults()
				if faults := ask[[]string](t, page.Tab, `[...document.querySelectorAll('.fault, .not-started')].map((e) => e.textContent)`); len(faults) > 0 {
					t.Errorf("step %d of %s shows %q", number, role, faults)
				}
				if number < tourSteps {
					page.do(browser.Click(".tour button", words["next"]))
				}
			}
		}
	}
	page.do(browser.Click(".tour button", "English"), browser.Click(".tour button", "Resident"), tourAt("Resident", 1), browser.Click("nav a", "Report a problem"), placeless)
	page.do(filesLamp("Sari")...)
	page.do(
		browser.Click(".tour button", "Official"), tourAt("Official", 1), unread("1"),
		browser.Click(".task a", "Lamp is dark"),
		browser.Click(".status-form label", "In progress"), browser.Click(".status-form button", "Save"),
		browser.Click(".tour button", "Resident"), tourAt("Resident", 1),
		browser.Click(".bell", ""), browser.See(".group", "Lamp is dark"),
	)
	page.checkFaults()
	asked := requests()
	if len(asked) < 5 {
		t.Errorf("%d requests were seen, want those of the folder's scripts", len(asked))
	}
	for _, address := range asked {
		if !strings.HasPrefix(address, "file://"+folder+"/") && !strings.HasPrefix(address, "data:") {
			t.Errorf("the page requests %s", address)
		}
	}
}

const tourSteps = 6

// tourAt waits until the tour shows a step, and the page what belongs to it.
func tourAt(role string, number int) browser.Action {
	return browser.See(".tour button[aria-pressed=true]", role).Then(live).Then(browser.Until(fmt.Sprintf(
		`document.querySelector('.tour[data-step="%d"]') && document.querySelector('main h1') && !document.querySelector('main .skeleton, main [aria-busy=true]')`, number)))
}
