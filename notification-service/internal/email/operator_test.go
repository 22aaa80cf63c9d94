package email_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/service"
)

// suspects are who may have filed the anonymous report, with their addresses:
// three have mail hosts of their own, one is at a host of many.
var suspects = []struct{ name, address string }{
	{"ann", "ann@ann.example"}, {"ben", "ben@ben.example"}, {"cora", "cora@cora.example"}, {"dora", "dora@gmail.com"},
}

// An operator who votes on a public report of each suspect, and then on an
// anonymous one, does not learn by what operators see whose that is: not by the
// figures of mails, nor by the metrics of each worker, nor by the log. Whoever
// reads the figures of each host learns it each time.
func TestOperatorLooksForReporter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(to string) *smtp.SMTPError // of the mail server
		bounce string                          // what comes back later
	}{
		{"mails arrive", func(string) *smtp.SMTPError { return nil }, ""},
		{"mails come back", func(string) *smtp.SMTPError { return nil }, "5.2.2"},
		{"hosts defer", func(string) *smtp.SMTPError {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 4, 1}, Message: "later"}
		}, ""},
		{"one host defers", func(to string) *smtp.SMTPError {
			if strings.HasPrefix(to, "ben@") {
				return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 4, 1}, Message: "later"}
			}
			return nil
		}, ""},
		{"one host refuses", func(to string) *smtp.SMTPError {
			if strings.HasPrefix(to, "ben@") {
				return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "no"}
			}
			return nil
		}, ""},
		{"one host has a policy", func(to string) *smtp.SMTPError {
			if strings.HasPrefix(to, "ben@") {
				return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "no"}
			}
			return nil
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOperator(t)
			o.server.script(func(at, to string, _ int) action {
				if answer := tt.answer(to); at == "RCPT" && answer != nil {
					return action{err: answer}
				}
				return action{}
			})
			acts := 0
			// learn returns what an act on a report of the suspect changes in what
			// is seen by operators, and in the figures of each host.
			learn := func(suspect int, public bool) (seen, raw string) {
				t.Helper()
				before, attempts := o.look(), o.attempts()
				o.vote(suspects[suspect].name, public)
				acts++
				o.exec(`update deliveries set due_at = now() where attempts = 0`)
				o.waitFor(`select count(*) from deliveries where attempts = 1 and state in ('waiting', 'done', 'dead')`, acts)
				if tt.bounce != "" {
					b := email.Bounce{Delivery: o.number(`select max(id) from deliveries`), Code: tt.bounce}
					if err := o.store.Mails.MailBounced(t.Context(), b); err != nil {
						t.Fatal(err)
					}
				}
				o.waitDays() // nothing is shown before an hour, or a day, is over
				for host, n := range o.attempts() {
					if n != attempts[host] {
						raw += host
					}
				}
				return changes(before, o.look()), raw
			}
			var raw [2][]string // by public reports, and by anonymous ones
			for i, public := range []bool{true, false} {
				for suspect := range suspects {
					seen, host := learn(suspect, public)
					raw[i] = append(raw[i], host)
					if seen != "" { // so that all are alike, and one in four guesses is right
						t.Errorf("a vote on a report of %s, public %t, changes what operators see:\n%s", suspects[suspect].name, public, seen)
					}
				}
			}
			if got := right(raw[0], raw[1]); got != float64(len(suspects)) {
				t.Errorf("whoever reads the figures of each host finds %.1f of %d reporters, which proves nothing: %q", got, len(suspects), raw)
			}
		})
	}
}

// right returns how many reporters are found on average by whoever compares what
// an act on an anonymous report changes with what one on a public report of each
// suspect changes, and chooses among those with the same.
func right(public, anonymous []string) (found float64) {
	for author, change := range anonymous {
		alike := 0
		for _, other := range public {
			if other == change {
				alike++
			}
		}
		switch {
		case alike == 0:
			found += 1 / float64(len(public)) // it tells nothing: any of them
		case public[author] == change:
			found += 1 / float64(alike)
		}
	}
	return found
}

// changes returns what is other in after than in before, and by how much.
func changes(before, after map[string]float64) string {
	var changed []string
	for what, n := range after {
		if n != before[what] {
			changed = append(changed, fmt.Sprint(what, " ", n-before[what]))
		}
	}
	slices.Sort(changed)
	return strings.Join(changed, "\n")
}

// An operator sees the figures of mails, the metrics of two workers and their log.
type operator struct {
	*world
	figures service.HandlerFunc
	workers []*prometheus.Registry
}

// newOperator starts a city with the suspects and others at a large host.
func newOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{world: newWorld(t)}
	ring, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	o.figures = admin.EmailOperations(o.store.Mails, crowd.NewRounding(ring))["readEmail"].Handler
	for _, s := range suspects {
		o.contact(s.name, s.address, event.VoteReceivedKey)
	}
	for i := range crowd.Size {
		o.contact(fmt.Sprint("other", i), fmt.Sprintf("other%d@gmail.com", i))
	}
	for range 2 {
		reg := prometheus.NewRegistry()
		o.workers = append(o.workers, reg)
		o.startMeasured(reg)
	}
	return o
}

// vote votes on a new report of the user, who wants mails about it.
func (o *operator) vote(user string, public bool) {
	o.t.Helper()
	report := uuid.New()
	if !public {
		if err := o.store.Contacts.SetConsent(o.t.Context(), notification.Reader{UserID: user}, report, true); err != nil {
			o.t.Fatal(err)
		}
	}
	m := &event.VoteReceived{Subject: subject(report, user, "Pothole", public), VoterID: "operator", VoteType: event.Upvote, NewScore: new(int64(1))}
	o.apply(postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, user)})
}

// waitDays has all that happened be two days ago.
func (o *operator) waitDays() {
	o.t.Helper()
	o.exec(`update deliveries set created_at = created_at - interval '2 days'`)
	o.exec(`update delivery_attempts set at = at - interval '2 days'`)
	o.exec(`update mail_bounces set at = at - interval '2 days'`)
}

// look returns all that operators see, as numbers: the figures, the metrics but
// for how long something took, and how often each line is in the log.
func (o *operator) look() map[string]float64 {
	o.t.Helper()
	seen := make(map[string]float64)
	answer := httptest.NewRecorder()
	if err := o.figures(answer, httptest.NewRequestWithContext(o.t.Context(), http.MethodGet, "/admin/email", nil)); err != nil {
		o.t.Fatal(err)
	}
	var figures struct{ Lanes, Bounces []json.RawMessage }
	if err := json.Unmarshal(answer.Body.Bytes(), &figures); err != nil || len(figures.Lanes) != 2 {
		o.t.Fatalf("figures %s, %v; want one host of many and all others", answer.Body, err)
	}
	for _, line := range slices.Concat(figures.Lanes, figures.Bounces) {
		seen[string(line)]++
	}
	for i, reg := range o.workers {
		answer := httptest.NewRecorder()
		service.MetricsHandler(reg).ServeHTTP(answer, httptest.NewRequestWithContext(o.t.Context(), http.MethodGet, "/metrics", nil))
		if !strings.Contains(answer.Body.String(), "deliveries_ended_total") {
			o.t.Fatalf("a worker counts nothing: %s", answer.Body)
		}
		for line := range strings.Lines(answer.Body.String()) {
			at := strings.LastIndexByte(line, ' ')
			if series := line[:max(at, 0)]; !byChance.MatchString(series) {
				n, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
				if err != nil {
					o.t.Fatalf("metric %q: %v", line, err)
				}
				seen[fmt.Sprint("worker ", i, " ", series)] = n
			}
		}
	}
	for line := range strings.Lines(o.log.String()) {
		seen[anID.ReplaceAllString(line, "an id")]++
	}
	return seen
}

var (
	// byChance are comments, metrics of the test's own requests, and durations.
	byChance = regexp.MustCompile(`^(#|promhttp_)|_seconds_(bucket|sum)`)
	// anID is the id of a message, which is another each time.
	anID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
)

// attempts returns how many attempts there were at each host.
func (o *operator) attempts() map[string]int {
	o.t.Helper()
	rows, err := o.pool.Query(o.t.Context(), `select lane from deliveries d join delivery_attempts a on a.delivery_id = d.id`)
	if err != nil {
		o.t.Fatal(err)
	}
	hosts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		o.t.Fatal(err)
	}
	attempts := make(map[string]int)
	for _, host := range hosts {
		attempts[host]++
	}
	return attempts
}
