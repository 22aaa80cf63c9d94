package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/docs"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A rule says who may do what an operation does, besides the roles in the document.
type rule string

// The rules. Who may read is in actor.sees, who may work in actor.handles.
const (
	byShown      rule = "shown"     // of what everybody sees, whoever asks
	byReading    rule = "reads"     // whoever sees it
	byConversing rule = "converses" // the reporter, and officials who work on it
	byHandling   rule = "handles"   // officials who work on it
	byModerating rule = "moderates" // moderators
	byOwning     rule = "owns"      // the reporter
	byCorrecting rule = "corrects"  // the reporter, and officials who work on it
	byUploading  rule = "uploads"   // likewise, photos of what is not hidden
	byRemoving   rule = "removes"   // likewise; officials, where they moderate
	byVoting     rule = "votes"     // residents, of what everybody sees
	byCommenting rule = "comments"  // likewise
	byMoving     rule = "moves"     // handles, by the result in the answer
	byListing    rule = "lists"     // handles, by whether the answer has the report
	byPublishing rule = "publishes" // shown, likewise
	byOwnList    rule = "own lists" // owns, likewise
	byCounting   rule = "counts"    // handles, by the figure in the answer
)

// A row is a request of the table. In its path and body, {id} is a report, {comment_id},
// {question_id}, {photo_id} are of it, and ORIGINAL is another one of the official's.
type row struct {
	rule
	path, body string // the path without the document's, if it has a query
}

// rows has a row for each operation of the document.
var rows = map[string][]row{
	"getReport": {{byReading, "", ""}}, "getReportHistory": {{byReading, "", ""}}, "listPhotos": {{byReading, "", ""}}, "listComments": {{byReading, "", ""}},
	"getPicture":  {{byConversing, "/photos/{photo_id}/320.jpg", ""}}, // of a photo that nobody has shown yet
	"getDialogue": {{byConversing, "", ""}}, "getOutlook": {{byOwning, "", ""}}, "reportAbuse": {{byShown, "", `{"reason":"spam"}`}},
	"getWork":       {{byHandling, "", ""}},
	"changeStatus":  {{byHandling, "", `{"status":"in_progress"}`}},
	"replyToReport": {{byHandling, "", `{"text":"Soon"}`}},
	"assignReport":  {{byHandling, "", `{"assignee":{"id":"x","name":"X"}}`}},
	"forwardReport": {{byHandling, "", `{"department_id":8,"reason":"theirs"}`}},
	"addNote":       {{byHandling, "", `{"text":"A note"}`}},
	"setDuplicate":  {{byHandling, "", `{"original":"ORIGINAL"}`}}, "unsetDuplicate": {{byHandling, "", ""}},
	"askReporter": {{byHandling, "", `{"text":"Where?"}`}}, "withdrawQuestion": {{byHandling, "", ""}},
	"keepResolved": {{byHandling, "", `{"note":"It was fixed"}`}}, "dismissAbuse": {{byHandling, "", ""}}, "seeComments": {{byHandling, "", ""}},
	"hideReport": {{byModerating, "", `{"reason":"insults"}`}}, "unhideReport": {{byModerating, "", ""}}, "setVisibility": {{byModerating, "", `{"visibility":"officials"}`}},
	"redactReport": {{byModerating, "", `{"title":"Words","reason":"names"}`}},
	"hideComment":  {{byModerating, "", `{"reason":"insults"}`}}, "showComment": {{byModerating, "", ""}},
	"showPhoto": {{byModerating, "", ""}}, "redactPhoto": {{byModerating, "", `{"rects":[{"x":0,"y":0,"width":0.5,"height":0.5}]}`}},
	"getConnectionReport": {{byReading, "", ""}}, "listConnectionReports": {{byListing, "/reports/connection?limit=100", ""}},
	"sendToFirm": {{byHandling, "", `{"firm_id":"FIRM","text":"Mend it"}`}}, "getJob": {{byHandling, "", ""}}, "updateJob": {{byHandling, "", `{"said":"accepted"}`}},
	"setExternalRef": {{byHandling, "", `{"number":"WO-1"}`}},
	"removePhoto":    {{byRemoving, "", ""}}, "putPhoto": {{byUploading, "/reports/{id}/photos/NEW", "JPEG"}},
	"correctReport":  {{byCorrecting, "", `{"address":"Jl. Braga 1"}`}},
	"withdrawReport": {{byOwning, "", ""}}, "hideName": {{byOwning, "", `{"privacy_level":"anonymous"}`}}, "giveVerdict": {{byOwning, "", `{"fixed":true}`}},
	"answerQuestion": {{byOwning, "", `{"text":"There"}`}},
	"vote":           {{byVoting, "", `{"vote_type":"upvote"}`}}, "withdrawVote": {{byVoting, "", ""}},
	"addComment":  {{byCommenting, "", `{"text":"So it is","anonymous":false}`}},
	"moveReports": {{byMoving, "", `{"status":"in_progress","reports":[{"id":"{id}"}]}`}},

	"listQueue": {
		{byListing, "/reports/queue?limit=100", ""}, {byListing, "/reports/queue?limit=100&hidden=true", ""}, {byListing, "/reports/queue?limit=100&withdrawn=true", ""},
		{byListing, "/reports/queue?limit=100&q=lamp&order=due", ""}, {byListing, "/reports/queue?q={id}", ""},
	},
	"exportReports": {{byListing, "", ""}}, "mapQueue": {{byListing, "/reports/queue/map?bbox=107,-7,108,-6&zoom=18", ""}},
	"listHeldPhotos": {{byListing, "/reports/queue/photos?limit=100", ""}}, "listAbuse": {{byListing, "/reports/queue/abuse?limit=100", ""}}, "listBulkMoves": {{byListing, "", ""}},
	"countQueue": {{byCounting, "", ""}}, "countOverTime": {{byCounting, "", ""}}, "countWaiting": {{byCounting, "", ""}},
	"listReports": {{byPublishing, "/reports?limit=100", ""}}, "listMapPoints": {{byPublishing, "/map/points?bbox=107,-7,108,-6&zoom=18", ""}},
	"openDataCSV": {{byPublishing, "", ""}}, "openDataGeoJSON": {{byPublishing, "", ""}}, "openDataAtom": {{byPublishing, "", ""}},
	"listMyReports": {{byOwnList, "/reports/mine?limit=100", ""}}, "readOwnData": {{byOwnList, "", ""}},
}

// aboutNothing are the operations that are about no report, or create one, or do not know who
// asks, or are for operators and auditors, who are shown no report:
// TestEachOperationRefusesEachOtherRole has their roles.
var aboutNothing = strings.Fields(`previewReport listCategories listAreas createReport eraseOwnData readScope listTemplates setTemplates listViews setViews getCalendar
	setCalendar getCategorySettings setCategories listCategoryChanges getAreaSettings setAreas listAssets listAssetLayers setAssets printAssets listDepartments
	setDepartments outboxStats outboxHistory listOutboxMessages listRefusedOutboxMessages retryOutboxMessages republishOutboxMessages retryOutboxMessage
	outboxMessageStory discardOutboxMessage outboxAudit listErasures requestErasure readHealth readReconciliation listMissingMessages closeMissingMessages
	listSchedules listScheduleRuns pauseSchedule resumeSchedule runSchedule auditSchedules listOpen311Keys makeOpen311Key revokeOpen311Key
	listConnections makeConnection revokeConnection listFirms setFirms listPeople
	readGuestSwitch setGuestSwitch auditSettings readGuests createGuest createGuestCode openGuestSession readAdoption adoptGuest declineAdoption
	createDevToken importReports getSettings setSettings livez readyz health openapi`)

// An actor makes requests.
type actor struct {
	name        string
	role        auth.Role // empty for nobody
	guest, city bool
	departments []string
	private     bool // a connection's scope
}

// machine reports whether a has a key or a link.
func (a actor) machine() bool { return a.role == auth.Connection || a.role == auth.Firm }

var actors = []actor{
	{name: "nobody"}, {name: "guest", role: auth.Resident, guest: true}, {name: "resident", role: auth.Resident}, {name: "reporter", role: auth.Resident},
	{name: "official of the department", role: auth.Official, departments: []string{"lights", "gone"}},
	{name: "official of another", role: auth.Official, departments: []string{"roads"}},
	{name: "official of both", role: auth.Official, departments: []string{"lights", "roads"}},
	{name: "moderator", role: auth.Moderator, city: true, departments: []string{"roads"}},
	{name: "operator", role: auth.Operator}, {name: "auditor", role: auth.Auditor},
	{name: "connection", role: auth.Connection, departments: []string{"lights"}},
	{name: "connection with private reports", role: auth.Connection, departments: []string{"lights"}, private: true},
	{name: "firm", role: auth.Firm, departments: []string{"lights"}, private: true},
}

// A subject is a report of the table.
type subject struct {
	name                               string
	department                         string // empty for none
	private, hidden, withdrawn, routed bool
}

var subjects = []subject{
	{name: "public", department: "lights"}, {name: "private", department: "lights", private: true}, {name: "hidden", department: "lights", hidden: true},
	{name: "withdrawn", department: "lights", withdrawn: true}, {name: "without department"}, {name: "private without department", private: true},
	{name: "assigned", department: "lights", routed: true, private: true},
}

func (s subject) concealed() bool { return s.private || s.hidden || s.withdrawn }

func (a actor) handles(s subject) bool {
	if a.machine() { // nothing without a department, and nothing hidden
		return slices.Contains(a.departments, s.department) && !s.hidden && !s.withdrawn && (a.private || !s.private)
	}
	return a.city || a.role == auth.Official && (s.department == "" || slices.Contains(a.departments, s.department))
}

func (a actor) sees(s subject) bool {
	if a.machine() {
		return a.handles(s)
	}
	return !s.concealed() || a.name == "reporter" || a.handles(s)
}

// want returns the status of the answer to a: 0 is any that says that a may.
func (a actor) want(op operationOf, r row, s subject) int { //nolint:cyclop // the rules, one after the other
	elsewhere := http.StatusNotFound
	if a.sees(s) && (a.role == auth.Official || a.role == auth.Moderator) {
		elsewhere = http.StatusForbidden
	}
	if status := a.refused(op); status != 0 {
		return status
	}
	may, own := false, a.name == "reporter"
	switch r.rule {
	case byShown, byPublishing:
		may, elsewhere = !s.concealed(), http.StatusNotFound
	case byReading:
		may = a.sees(s)
	case byConversing, byCorrecting:
		may = own || a.handles(s) && !a.machine()
		if op.id == "getPicture" {
			elsewhere = http.StatusNotFound
		}
	case byHandling:
		may = a.handles(s)
		if s.withdrawn && strings.HasSuffix(op.id, "Duplicate") { // it is nobody's duplicate
			may, elsewhere = false, http.StatusNotFound
		}
	case byListing, byMoving, byCounting:
		may = a.handles(s)
	case byModerating:
		may = a.city
		if op.id == "redactPhoto" && !a.handles(s) { // the photo waits, and is not seen
			elsewhere = http.StatusNotFound
		}
	case byOwning, byOwnList:
		may, elsewhere = own, http.StatusNotFound
	case byUploading, byRemoving:
		may = own && !s.hidden && !s.withdrawn || a.handles(s) && (r.rule == byUploading || s.hidden || s.withdrawn) || a.city
		if elsewhere = http.StatusNotFound; a.sees(s) && !own {
			elsewhere = http.StatusForbidden
		}
	case byVoting, byCommenting:
		may, elsewhere = !s.concealed() && !a.guest && !(own && r.rule == byVoting), http.StatusNotFound
		if a.guest || own && !s.concealed() {
			elsewhere = http.StatusForbidden
		}
	}
	if may {
		return 0
	}
	return elsewhere
}

// refused returns the status with which the role of a is refused, or 0.
func (a actor) refused(op operationOf) int {
	role := a.role
	if role == auth.Moderator {
		role = auth.Official
	}
	switch {
	case a.machine() && !slices.Contains(op.roles, string(role)):
		return http.StatusForbidden
	case op.public:
		return 0
	case role == "":
		return http.StatusUnauthorized
	case len(op.roles) > 0 && !slices.Contains(op.roles, string(role)):
		return http.StatusForbidden
	}
	return 0
}

// An operationOf is one of the document.
type operationOf struct {
	id, method, path string
	public           bool
	roles            []string
}

func operationsOf(t *testing.T) (all []operationOf) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(docs.Read("openapi/report-service.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			o := operationOf{id: op.OperationID, method: method, path: path}
			if op.Security != nil {
				o.public = len(*op.Security) == 0 || slices.ContainsFunc(*op.Security, func(s openapi3.SecurityRequirement) bool { return len(s) == 0 })
			}
			roles, _ := op.Extensions["x-roles"].([]any)
			for _, role := range roles {
				o.roles = append(o.roles, role.(string))
			}
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b operationOf) int { // what only reads comes first, with few reports
		return cmp.Or(cmp.Compare(writes(a), writes(b)), strings.Compare(a.id, b.id))
	})
	return all
}

func writes(op operationOf) int {
	if op.method == http.MethodGet {
		return 0
	}
	return 1
}

// A table is what is asked, by the names of reports.
type table struct {
	*testServer
	files    blob.Store
	picture  []byte
	tokens   map[string]string
	original uuid.UUID
}

// Where officials work for their departments, each operation does with each kind of report
// what the rules say, for everybody who may ask. An operation of the document without a row
// fails. What is not found is answered as a report that does not exist.
func TestAuthorisation(t *testing.T) {
	t.Parallel()
	dir, set := withFiles(t)
	tb := table{testServer: newServer(t, set, func(p *parts) { p.Desk = auth.DepartmentDesk }), tokens: make(map[string]string)}
	var err error
	if tb.files, err = blob.Open(blob.Config{URL: "file://" + dir}); err != nil {
		t.Fatal(err)
	}
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 64, 64)), nil); err != nil {
		t.Fatal(err)
	}
	tb.picture = photo.Bytes()
	tb.setDepartments()
	if _, err := tb.pool.Exec(t.Context(), `insert into firms (id, department_id, name, address) values ($1, 7, 'Lampu Jaya', 'office@lampu.example')`, firmOfLights); err != nil {
		t.Fatal(err)
	}
	for _, a := range actors {
		switch {
		case a.guest:
			tb.tokens[a.name] = tb.guestToken()
		case a.role == auth.Connection:
			tb.tokens[a.name] = tb.connect(a.name, 7, a.private)
		case a.role == auth.Firm: // each report has a link of its own
		case a.role != "":
			tb.tokens[a.name] = tokenOf(t, a.name, a.role, a.departments...)
		}
	}
	tb.original = tb.make(subjects[0])
	standing := make(map[string]uuid.UUID) // for operations that change nothing
	for _, s := range subjects {
		standing[s.name] = tb.make(s)
	}
	cells, departures := 0, 0
	for _, op := range operationsOf(t) {
		wanted, ok := rows[op.id]
		if !ok && !slices.Contains(aboutNothing, op.id) {
			t.Errorf("%s has no row in the table", op.id)
		}
		for _, r := range wanted {
			for _, a := range actors {
				for _, s := range subjects {
					id := standing[s.name]
					if op.method != http.MethodGet && a.refused(op) == 0 {
						id = tb.make(s)
					}
					cells++
					if got := tb.ask(op, r, a, s, id, standing); got != "" {
						departures++
						t.Errorf("%s %s, %s, %s: %s", op.id, r.path, a.name, s.name, got)
					}
				}
			}
		}
	}
	fmt.Printf("authorisation operations=%d roles=%d reports=%d cells=%d departures=%d\n", len(rows), len(actors), len(subjects), cells, departures)
}

const firmOfLights = "0198c0de-0000-7000-8000-00000000000f"

// link returns the link of a firm to a report, in whatever state that is.
func (tb table) link(id uuid.UUID) string {
	tb.t.Helper()
	token := report.NewJobToken()
	_, err := tb.pool.Exec(tb.t.Context(), `
		with before as (update firm_jobs set ended_at = now() where report_id = $1 and ended_at is null returning id)
		insert into firm_jobs (id, report_id, firm_id, hash, link, text, sent_at, ends_at)
		select gen_random_uuid(), $1, $2, $3, '', '', now(), now() + interval '14 days' where (select count(*) from before) >= 0`, id, firmOfLights, report.HashKey(token))
	if err != nil {
		tb.t.Fatal(err)
	}
	return token
}

// guestToken opens a session without an account.
func (tb table) guestToken() string {
	tb.t.Helper()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": auth.GuestIssuer, "aud": "cityconnect", "sub": uuid.NewString(), "exp": time.Now().Add(time.Hour).Unix(),
	}).SignedString([]byte(guestKey))
	if err != nil {
		tb.t.Fatal(err)
	}
	return token
}

// make files a report of the kind, with a held photo, a comment, an open question and a
// complaint, and a bulk move that it was part of.
func (tb table) make(s subject) uuid.UUID {
	tb.t.Helper()
	category, visibility := 2, "public"
	if s.department == "" || s.routed {
		category = 3
	}
	if s.private {
		visibility = "officials"
	}
	id := tb.fileAbout(tb.tokens["reporter"], category, `lamp","visibility":"`+visibility)
	var batch pgx.Batch
	for sql, do := range map[string]bool{
		`update reports set hidden_reason = 'insults' where id = $1`:                         s.hidden,
		`update reports set hidden_reason = 'withdrawn', withdrawn_at = now() where id = $1`: s.withdrawn,
		`update reports set department_id = 7 where id = $1`:                                 s.routed,
		`insert into photos (id, report_id, state, official, bytes, digest, width, height) values (overlay($1::uuid::text placing '8' from 15)::uuid, $1, 'held', false, 1, '', 64, 64)`: true,
		`insert into comments (id, report_id, text, anonymous, created_at) values ($1, $1, 'So it is', true, now())`:                                                                     true,
		`insert into questions (id, report_id, text, asked_by, asked_at, ends_on, ends_at) values ($1, $1, 'Where?', 'x', now(), now(), now() + interval '9 days')`:                      true,
		`insert into abuse_reports (report_id, user_mac, reason) values ($1, '', 'spam')`:                                                                                                true,
		`insert into bulk_moves (official_id, status, note, reports, refused) values ('system', 'pending', '', array[$1::uuid], '{}')`:                                                   true,
	} {
		if do {
			batch.Queue(sql, id)
		}
	}
	if err := tb.pool.SendBatch(tb.t.Context(), &batch).Close(); err != nil {
		tb.t.Fatal(err)
	}
	for _, size := range picture.Sizes {
		if err := tb.files.Put(tb.t.Context(), picture.Key(photoOf(id), size), bytes.NewReader(tb.picture), int64(len(tb.picture))); err != nil {
			tb.t.Fatal(err)
		}
	}
	return id
}

// photoOf returns the id of the photo that make adds to a report.
func photoOf(id uuid.UUID) uuid.UUID {
	id[6] = 8<<4 | id[6]&0x0f
	return id
}

var (
	anID      = regexp.MustCompile(`\{(comment_id|question_id|id)\}`)
	likely    = regexp.MustCompile(`"perhaps_of":{[^}]*}`) // of another report
	trace     = regexp.MustCompile(`"trace_id":"\w+"`)
	theFigure = map[string]string{"countQueue": "total", "countOverTime": "open_at_end", "countWaiting": "abuse_reports"}
)

// ask sends the request of a cell, and returns what is wrong with the answer.
func (tb table) ask(op operationOf, r row, a actor, s subject, id uuid.UUID, standing map[string]uuid.UUID) string {
	tb.t.Helper()
	fill := func(text string, id uuid.UUID) string {
		text = strings.NewReplacer("{photo_id}", photoOf(id).String(), "NEW", uuid.NewString(), "ORIGINAL", tb.original.String(), "FIRM", firmOfLights, "{name}", "320.jpg").Replace(text)
		return anID.ReplaceAllString(text, id.String())
	}
	path := r.path
	if path == "" {
		path = op.path
	}
	c := call{method: op.method, path: fill(path, id), token: tb.tokens[a.name], body: fill(r.body, id)}
	if r.body == "JPEG" {
		c.body, c.headers = string(tb.picture), map[string]string{"Content-Type": "image/jpeg"}
	}
	if op.id == "putPhoto" && a.machine() { // it adds those of the finished work alone
		c.path += "?purpose=after"
	}
	if op.id == "correctReport" && a.role != auth.Resident {
		c.body = strings.Replace(c.body, "{", `{"reason":"It is there",`, 1)
	}
	if a.role == auth.Firm {
		c.token = tb.link(id)
	}
	res, want := tb.do(c), a.want(op, r, s)
	if status := a.refused(op); status != 0 {
		if res.StatusCode != status {
			return fmt.Sprintf("status %d, want %d", res.StatusCode, status)
		}
		return ""
	}
	switch r.rule {
	case byMoving:
		got := regexp.MustCompile(`"moved":true|report-hidden`).Match(res.body)
		if got != (want == 0) || bytes.Contains(res.body, []byte("other-department")) != (want == http.StatusForbidden) {
			return fmt.Sprintf("answer %s, want that of %d", res.body, want)
		}
	case byListing, byPublishing, byOwnList:
		return tb.listed(op, r, s, id, res, want == 0)
	case byCounting:
		return tb.counted(op, a, res)
	default:
		may := !slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, res.StatusCode)
		if may != (want == 0) || !may && res.StatusCode != want {
			return fmt.Sprintf("status %d %s, want %d", res.StatusCode, res.body, want)
		}
		if want == http.StatusNotFound && !strings.HasSuffix(op.id, "Job") && op.id != "reportAbuse" && op.id != "redactPhoto" {
			none := uuid.New()
			c.path, c.body = fill(path, none), strings.ReplaceAll(c.body, id.String(), none.String())
			if other := tb.do(c); string(trace.ReplaceAll(other.body, nil)) != string(trace.ReplaceAll(res.body, nil)) || other.StatusCode != res.StatusCode {
				return fmt.Sprintf("answer %s, and of none %s", res.body, other.body)
			}
		}
	}
	return ""
}

// listed compares whether a list has a report with what it should.
func (tb table) listed(op operationOf, r row, s subject, id uuid.UUID, res answer, may bool) string {
	switch {
	case res.StatusCode != http.StatusOK:
		return fmt.Sprintf("status %d %s, want 200", res.StatusCode, res.body)
	case strings.Contains(r.path, "hidden="):
		may = may && s.hidden
	case strings.Contains(r.path, "withdrawn="):
		may = may && s.withdrawn
	case r.rule == byListing && !slices.Contains([]string{"listHeldPhotos", "listAbuse", "listBulkMoves"}, op.id):
		may = may && !s.hidden && !s.withdrawn
	}
	if got := bytes.Contains(likely.ReplaceAll(res.body, nil), []byte(id.String())); got != may {
		return fmt.Sprintf("the list has it: %t, want %t", got, may)
	}
	return ""
}

// counted compares a figure with how many of the reports there are in reach.
func (tb table) counted(op operationOf, a actor, res answer) string {
	var figures map[string]any
	if err := json.Unmarshal(res.body, &figures); err != nil {
		return fmt.Sprintf("answer %s, want figures", res.body)
	}
	condition := `true`
	if !a.city {
		condition = `r.department_id is null and r.category_id = 3` // roads have those of nobody
		if slices.Contains(a.departments, "lights") {
			condition = `true`
		}
	}
	from := `reports r where (hidden_reason is null or hidden_reason = 'private')`
	if op.id == "countWaiting" {
		from = `(select r.* from reports r join abuse_reports b on b.report_id = r.id where b.settled_at is null) r where true`
	}
	if op.id == "countOverTime" {
		from += ` and status in ('pending', 'in_progress')`
	}
	var want string
	if err := tb.pool.QueryRow(tb.t.Context(), `select count(*)::text from `+from+` and `+condition).Scan(&want); err != nil {
		tb.t.Fatal(err)
	}
	if got := fmt.Sprint(figures[theFigure[op.id]]); got != want {
		return fmt.Sprintf("figure %s, want %s", got, want)
	}
	return ""
}
