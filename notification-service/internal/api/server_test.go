package api_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/operators"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/testing/openapitest"
)

// document is what every answer in these tests is held to.
var document = openapitest.New("../../../docs/openapi/notification-service.yaml")

// A testServer is the API on a database of the test's own.
type testServer struct {
	t        *testing.T
	url      string
	pool     *pgxpool.Pool
	store    *postgres.DB
	mailKeys *email.Keys
	ring     *event.Keyring
}

// bounceSecret is that of whoever passes bounces on.
const bounceSecret = "a secret of thirty-two characters"

// parts are those that a test may change.
type parts struct {
	Mail    api.Mail
	Callers api.Callers // its Mail is set later
	Push    api.Push
	Places  api.Places
}

func newServer(t *testing.T, options ...func(*parts)) *testServer {
	t.Helper()
	return newServerOn(t, pgtest.Notification(t), options...)
}

func newServerOn(t *testing.T, pool *pgxpool.Pool, options ...func(*parts)) *testServer {
	t.Helper()
	ring, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{t: t, pool: pool, store: postgres.New(pool, postgres.Options{Mail: true, MailDue: 2 * time.Minute}), mailKeys: email.NewKeys(ring), ring: ring}
	log, metrics := service.NewLogger(io.Discard, "notification", "debug"), service.NewRegistry()
	verifier, err := auth.New(t.Context(), auth.Config{Mode: auth.Dev, Issuer: "tests", Audience: "cityconnect",
		Secret: strings.Repeat("secret", 6), RoleClaim: "role", DepartmentsClaim: "departments", Addr: "127.0.0.1:0"}, log)
	if err != nil {
		t.Fatal(err)
	}
	hub := sse.New(sse.Defaults(), s.store.Streams, log, metrics)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Run(ctx) }) // it returns nil
	letters := admin.Letters{Store: deadletter.NewStore(pool)}
	operations := append([]openapi.Operations{letters.Operations(), letters.ReplayOperations(), admin.Delayed{}.Operations(), admin.Pools{}.Operations()},
		admin.Webhooks{}.Operations(), admin.BackOffice{}.Operations(), admin.Appearance{}.Operations(), admin.Setup{}.Operations(), admin.EmailOperations(s.store.Mails, crowd.NewRounding(ring)),
		operators.ErasureOperations(nil), operators.ScheduleOperations(nil), openapi.Operations{"workerPoolHistory": operators.History(nil)},
		operators.HealthOperations(monitor.New()), admin.StoryOperations(postgres.NewStories(pool)), operators.ReconciliationOperations(nil))
	problems := maps.Clone(admin.Problems)
	maps.Copy(problems, api.MailProblems)
	p := parts{
		Mail:    api.Mail{Contacts: s.store.Contacts, Digests: s.store.Digests, Bounces: s.store.Mails, Keys: s.mailKeys, BounceSecret: bounceSecret, Own: []string{"no-reply@city.example.org"}},
		Callers: api.Callers{Store: s.store.Callers, Ring: ring},
	}
	for _, set := range options {
		set(&p)
	}
	p.Callers.Mail = p.Mail
	if p.Push.Config != nil {
		p.Push.Devices = s.store.Devices
	}
	handler, err := api.New(
		api.Server{
			Auth: verifier, Metrics: metrics, Log: log, Problems: problems, Links: p.Callers.Links,
			Health: service.NewHealth(log, service.Details{}, service.Check{Name: "database", Probe: pool.Ping}),
		},
		append(operations, p.Mail.Operations(), p.Callers.Operations(), p.Push.Operations(), p.Places.Operations(),
			api.Notifications{Store: s.store.Streams}.Operations(), api.Follows{Store: s.store.Follows}.Operations(), api.Streams{Hub: hub}.Operations(),
			api.Preferences{Mail: p.Mail, Push: p.Push, Consents: s.store.Contacts}.Operations(),
			api.OwnData{Read: postgres.OwnData(pool), Keys: p.Mail.Keys}.Operations())...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(func() { cancel(); running.Wait() })
	s.url = server.URL
	return s
}

// A call is a request as the tests write it down.
type call struct {
	method, path string
	token        string
	body         string
	headers      map[string]string
}

// do sends c, wants the status, compares the answer with the document, and
// reads it into answer unless that is nil.
func (s *testServer) do(c call, status int, answer any) http.Header {
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
	document.Check(s.t, req, res, body)
	if res.StatusCode != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", c.method, c.path, res.StatusCode, status, body)
	}
	if answer != nil {
		if err := json.Unmarshal(body, answer); err != nil {
			s.t.Fatalf("%s %s: %v in %s", c.method, c.path, err, body)
		}
	}
	return res.Header
}

// token signs in at the development issuer.
func (s *testServer) token(sub string, role auth.Role) string {
	s.t.Helper()
	var answer struct {
		Token string `json:"access_token"`
	}
	s.do(call{method: "POST", path: "/dev/token", body: `{"name":"Test","role":"` + string(role) + `","sub":"` + sub + `"}`}, 200, &answer)
	return answer.Token
}

// votes writes notifications for the user.
func (s *testServer) votes(user string, n int) {
	s.t.Helper()
	var batch []postgres.Message
	for range n {
		m := &event.VoteReceived{
			Subject: event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole", Timestamp: time.Now().Unix()},
			VoterID: "canary-voter", VoteType: event.Upvote, NewScore: new(int64(0)),
		}
		batch = append(batch, postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, user)})
	}
	s.apply(batch)
}

// report writes a notification for the officials.
func (s *testServer) report() {
	s.t.Helper()
	m := &event.ReportCreated{
		Subject:    event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Lamp", Timestamp: time.Now().Unix()},
		CategoryID: 1, CategoryName: "Light", PrivacyLevel: event.Anonymous,
	}
	s.apply([]postgres.Message{{ID: uuid.NewString(), Value: notification.Of(m, "")}})
}

func (s *testServer) apply(batch []postgres.Message) {
	s.t.Helper()
	if _, err := s.store.Effects.Apply(s.t.Context(), "test", batch); err != nil {
		s.t.Fatal(err)
	}
}

func TestDocumentObeysTheRules(t *testing.T) {
	t.Parallel()
	document.CheckRules(t)
}

func TestServedDocumentIsWhole(t *testing.T) {
	t.Parallel()
	var served json.RawMessage
	newServer(t).do(call{method: "GET", path: "/openapi.json"}, 200, &served)
	document.CheckServed(t, served)
}

// While its database is away, the service says so, and when to come back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), server.Create(migrations.Notification))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := newServerOn(t, pool)
	ann, pavel := s.token("ann", auth.Resident), s.token("pavel", auth.Operator)
	calls := []call{
		{method: "GET", path: "/notifications", token: ann}, {method: "GET", path: "/notifications/unread-count", token: ann},
		{method: "GET", path: "/admin/dlq/stats", token: pavel},
	}
	for _, c := range calls {
		s.do(c, 200, nil)
	}
	server.Stop()
	for range 2 { // with the connections of before, and with none
		for _, c := range calls {
			var problem struct{ Type string }
			header := s.do(c, 503, &problem)
			if problem.Type != service.Unavailable.URI() || header.Get("Retry-After") == "" {
				t.Errorf("%s: problem %s, Retry-After %q; want %s and some seconds", c.path, problem.Type, header.Get("Retry-After"), service.Unavailable.URI())
			}
		}
	}
}
