package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/operators"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/story"
	"github.com/cityconnect/cityconnect/report-service/internal/api"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

const secret = "a secret of the tests, longer than 32 bytes"

// guestKey signs the tokens of guests.
const guestKey = "a key of the tests for guests of 32 bytes or more"

// A testServer is the API on a database of the test's own.
type testServer struct {
	t        testing.TB
	url      string
	database string
	pool     *pgxpool.Pool
	db       *postgres.DB
	keys     *event.Keyring
	logs     *lockedBuffer
}

// parts are what tests change of the API.
type parts struct {
	api.City

	Guests   api.Guests
	Lists    api.Lists
	Map      api.Map
	Exports  api.Exports
	Comments api.Comments
	Files    blob.Store

	Desk auth.Desk

	ReportsPerUser, VotesPerUser ratelimit.Limit
	CostlyAtOnce                 int
	Open311On                    bool
}

func newServer(t testing.TB, options ...func(*parts)) *testServer {
	t.Helper()
	return newReplica(t, pgtest.Report(t).Config().ConnString(), rules, options...)
}

// rules are those of the tests' city.
var rules = postgres.Rules{Resolutions: report.Resolutions{VerdictDays: 10}, QuestionDays: 10, GuestReports: guestReports}

// newReplica returns another API on a database.
func newReplica(t testing.TB, database string, rules postgres.Rules, options ...func(*parts)) *testServer { //nolint:funlen // the parts of the service, one after the other
	t.Helper()
	s := &testServer{t: t, logs: new(lockedBuffer), database: database}
	var err error
	if s.pool, err = pgpool.Open(context.WithoutCancel(t.Context()), database+"&pool_max_conns=4", "test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	log := service.NewLogger(s.logs, "report", "debug")
	db := postgres.NewDB(s.pool, keys, func(shards.Set) {}, rules)
	s.db, s.keys = db, keys
	guests := postgres.NewGuests(db)
	var early parts
	for _, set := range options {
		set(&early)
	}
	verifier, err := auth.New(t.Context(), auth.Config{Mode: auth.Dev, DeskScope: early.Desk, Issuer: "tests", Audience: "cityconnect",
		Secret: secret, RoleClaim: "role", DepartmentsClaim: "departments", Addr: "127.0.0.1:0", Guests: true, GuestKey: guestKey}, log, auth.RefuseAdopted(guests.Adopted))
	if err != nil {
		t.Fatal(err)
	}
	// Not run: what it publishes is tested elsewhere.
	publisher := relay.New(relay.Defaults(), relay.Dependencies{Pool: s.pool, Keys: keys, Log: log, Metrics: service.NewRegistry()})
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	deadlines, keeper := postgres.NewDeadlines(db), upkeep.New(s.pool, keys, db)
	schedules, err := schedule.New(schedule.Dependencies{Pool: s.pool, Audit: keeper.AuditSchedule, Log: log, Metrics: service.NewRegistry()},
		deadlines.OverdueJob())
	if err != nil {
		t.Fatal(err)
	}
	store, desk, photos := postgres.NewReports(db), postgres.NewWorkbench(db), postgres.NewPhotos(db)
	work := api.Work{Workbench: desk, Duplicates: postgres.NewDuplicates(db)}
	p := parts{
		City:      api.City{Name: "Kota Bogor", Languages: []string{"en", "id"}, Categories: settings.NewCategories(db.City()), Areas: settings.NewAreas(db.City())},
		Guests:    api.Guests{On: true, Store: guests, Settings: db.City(), Auth: verifier, PerDay: guestReports, PerAddress: ratelimit.Limit{Turns: guestsPerAddress, Period: time.Hour}},
		Lists:     api.Lists{Reports: store},
		Map:       api.Map{Reports: store},
		Exports:   api.Exports{Workbench: desk},
		Comments:  api.Comments{Store: postgres.NewComments(db)},
		Open311On: true,
	}
	for _, set := range options {
		set(&p)
	}
	p.Guests.Log = log
	p.Guests.Limit()
	gates := api.NewGates(p.CostlyAtOnce)
	p.Lists.Gates, p.Map.Gates, p.Exports.Gates = gates, gates, gates
	connections := api.NewConnections(postgres.NewConnections(db), postgres.NewFirms(db), gates)
	applications := api.Open311{City: p.City, On: p.Open311On, Applications: postgres.NewOpen311(db), Connections: connections, Reports: store, Gates: gates}
	open311, err := applications.Handler(log)
	if err != nil {
		t.Fatal(err)
	}
	past := func(ctx context.Context, span time.Duration) (history.History, error) {
		return history.Read(ctx, s.pool, span)
	}
	health := service.NewHealth(log, service.Details{}, service.Check{Name: "database", Probe: s.pool.Ping})
	people := api.NewPeople(desk, log)
	recording, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- people.Run(recording) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Errorf("record people: %v", err)
		}
	})
	handler, err := api.New(api.Server{Auth: verifier, Health: health, Metrics: service.NewRegistry(), Log: log, Open311: open311, People: people, Connections: connections},
		p.Guests.Operations(), p.Lists.Operations(), p.Map.Operations(), p.Exports.Operations(), p.Comments.Operations(), applications.Operations(), work.Operations(),
		api.Reports{City: p.City, Store: store, Guests: p.Guests, PerUser: p.ReportsPerUser}.Operations(),
		api.Votes{Reports: store, PerUser: p.VotesPerUser}.Operations(),
		api.OpenData{City: p.City, Reports: store, Gates: gates}.Operations(),
		api.Previews{City: p.City, Reports: store}.Operations(),
		api.Photos{Store: photos, Files: p.Files, Log: log}.Operations(),
		api.Questions{Store: postgres.NewQuestions(db), PerUser: p.ReportsPerUser}.Operations(),
		api.OwnData{Upkeep: keeper, Gates: gates}.Operations(),
		api.Categories{City: p.City}.Operations(), api.Areas{City: p.City}.Operations(), api.Assets{City: p.City, Store: postgres.NewAssets(db)}.Operations(), api.SettingsFile{City: p.City, Settings: db.City()}.Operations(), api.Imports{City: p.City, Store: postgres.NewImports(db)}.Operations(),
		api.Moderation{Store: postgres.NewModeration(db), Work: work, PerUser: p.ReportsPerUser}.Operations(),
		api.Queue{Workbench: desk, Reports: store, Gates: gates}.Operations(),
		api.Moves{Workbench: desk, Reports: store}.Operations(),
		api.Numbers{Workbench: desk, Areas: p.Areas, Gates: gates}.Operations(),
		api.Settings{Desk: settings.NewDesk(db.City())}.Operations(),
		api.Verdicts{Reports: store, Work: work}.Operations(),
		api.Calendar{Settings: db.City(), Categories: p.Categories}.Operations(),
		api.Outbox{Store: outbox.NewStore(s.pool, publisher.Wake), Relay: publisher, Story: story.NewStore(s.pool, "queue.photo_checks"), History: past}.Operations(),
		api.ScheduleAudit{Upkeep: keeper}.Operations(),
		operators.ScheduleOperations(schedules), operators.ReconciliationOperations(reconciliation.NewResults(s.pool, outbox.AuditClosing)),
		operators.ErasureOperations(nil), operators.HealthOperations(monitor.New()))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// A lockedBuffer takes the log of several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// token returns the token of a user, whose name and id are the same.
func token(t testing.TB, name string, role auth.Role) string {
	t.Helper()
	return sign(t, jwt.MapClaims{"sub": name, "name": name, "role": role, "exp": time.Now().Add(time.Hour).Unix()})
}

func sign(t testing.TB, claims jwt.MapClaims) string {
	t.Helper()
	claims["iss"], claims["aud"] = "tests", "cityconnect"
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// A call is a request as the tests write it down.
type call struct {
	method, path string
	token        string
	body         string
	headers      map[string]string
}

// An answer is what came back.
type answer struct {
	*http.Response
	body []byte
}

// do sends c and compares the answer with the document.
func (s *testServer) do(c call) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), c.method, s.url+c.path, strings.NewReader(c.body))
	if err != nil {
		s.t.Fatal(err)
	}
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	described := document
	if strings.HasPrefix(c.path, "/open311/") {
		described = open311Document
	}
	described.Check(s.t, req, res, body)
	return answer{res, body}
}

// ok sends c, wants the status, and reads the answer as a T.
func ok[T any](s *testServer, c call, status int) (T, answer) {
	s.t.Helper()
	var body T
	a := s.do(c)
	if a.StatusCode != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", c.method, c.path, a.StatusCode, status, a.body)
	}
	if err := json.Unmarshal(a.body, &body); err != nil {
		s.t.Fatalf("%s %s: %v in %s", c.method, c.path, err, a.body)
	}
	return body, a
}

const newReport = `{"title":"Dark lamp","description":"at the crossing","category_id":2,
	"latitude":-6.9,"longitude":107.6,"address":"Jl. Asia Afrika 8","privacy_level":"public"}`

// file files newReport with the privacy level.
func (s *testServer) file(token, privacy string) reportapi.Report {
	s.t.Helper()
	body := strings.Replace(newReport, "public", privacy, 1)
	rep, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: token, body: body}, http.StatusCreated)
	return rep
}
