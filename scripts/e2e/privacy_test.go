package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// A canary is a resident whose id, name and e-mail are found wherever they
// are, and everything that is searched for them.
type canary struct {
	*stack
	leaks   *leakDetector
	words   string        // of an answer, which leaks looks for, too
	person  *leakDetector // leaks without the words
	user    *client.Client
	screen  *screen
	reports []client.Report
	wires   []*spy // copies of all that goes through the exchanges
	other   *otherSystem
	mails   *mailServer
	address string // that mails go to
}

// An anonymous reporter is never exposed: nobody else's answer, no message,
// dead letter, log line, metric or table but the private ones has a byte
// of the reporter, who is notified all the same.
func TestPrivacyCanary(t *testing.T) {
	t.Parallel()
	c := releaseCanary(t)
	c.screen.check(c.fileAnonymously())
	c.makeTrouble()
	c.callAtTheCounter()
	c.searchAnswers()
	c.searchWebhooks()
	c.searchMails()
	c.searchWires()
	c.awaitPushes()
	c.searchTables()
	c.searchProcesses()
	t.Logf("searched %d places for %d forms", c.leaks.calls, len(c.leaks.forms))
}

func releaseCanary(t *testing.T) *canary {
	t.Helper()
	mark := func() string { b := make([]byte, 6); _, _ = rand.Read(b); return hex.EncodeToString(b) }
	id, name, mail := "Id-"+mark()+"-Kanari", "Nama "+mark()+" Kanari", mark()+".kanari@surel.test"
	words := "Kata " + mark() + " Kanari"
	c := &canary{
		stack: prepareStack(t), address: mail, words: words,
		leaks: newLeakDetector(t, id, name, mail, words), person: newLeakDetector(t, id, name, mail),
	}
	geocoder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := httputil.DumpRequest(r, true) // a request without a body
		c.leaks.check("the geocoder", asked)
		_, _ = w.Write([]byte(`{"type":"FeatureCollection","features":[]}`)) // the client has left
	}))
	t.Cleanup(geocoder.Close)
	c.switchCommentsOn()
	c.switchGuestsOn()
	c.photo.env["GUESTS"] = "off" // or an official would have to show the canary's photo
	c.notification.env["GEOCODER_URL"] = geocoder.URL + "/search"
	c.start()
	c.mails = c.openMailServer()
	c.startPhotoWorker()
	c.user = c.As(id, token(jwt.MapClaims{"sub": id, "name": name, "email": mail, "role": "resident"}))
	for _, exchange := range []string{topology.Exchange(), topology.DeadLetterExchange(), topology.LiveExchange(), topology.ProgressExchange()} {
		c.wires = append(c.wires, c.spyOn(exchange))
	}
	c.screen = watch(t, c.user)
	c.setAreas(c.userOf("operator", "operator"))
	c.setAssets(c.userOf("operator", "operator"))
	c.other = openOtherSystem(t)
	c.other.register(c.stack, c.userOf("operator", "operator"))
	c.mails.giveAddress(c.user, mail)
	// A push service sees whose browser it is: its address contains the id.
	browser := map[string]any{
		"endpoint": "https://" + pushHost + "/" + id, "language": "en",
		"keys": map[string]string{"p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "auth": "BTBZMqHH6r4Tts7J_aSIgg"},
	}
	if err := c.user.Do(t.Context(), http.MethodPost, "/me/push", browser, nil); err != nil {
		t.Fatalf("ask for pushes: %v", err)
	}
	return c
}

// fileAnonymously has the canary file reports, and others deal with them. It
// returns what the canary is to see.
func (c *canary) fileAnonymously() (want []sight) {
	ben, olga := c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	for i := range 3 {
		in := draft(fmt.Sprint("Anonymous ", i))
		in.PrivacyLevel, in.Asset = "anonymous", "lamps/L-7"
		report, err := c.user.CreateReport(c.t.Context(), in, "Idempotency-Key", uuid.NewString())
		if err != nil {
			c.t.Fatalf("file anonymously: %v", err)
		}
		c.reports = append(c.reports, report)
		consent := map[string]any{"report_id": report.ID, "mail": true}
		if err := c.user.Do(c.t.Context(), http.MethodPut, "/me/mail-consents", consent, nil); err != nil {
			c.t.Fatalf("ask for mails: %v", err)
		}
		want = append(want, vote(c.t, ben, report, "upvote"), vote(c.t, ben, report, "downvote"))
		want = append(want, move(c.t, olga, report, "in_progress", "Seen"), say(c.t, olga, report, "We look at it on Thursday"), correct(c.t, olga, report))
	}
	want = append(want, c.converse(olga, c.reports[1]))
	// Nor does a report that is taken back say whose it was.
	in := draft("Taken back")
	in.PrivacyLevel = "anonymous"
	withdrawn, err := c.user.CreateReport(c.t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err == nil {
		err = c.user.Do(c.t.Context(), http.MethodDelete, "/reports/"+withdrawn.ID.String(), nil, nil)
	}
	if err != nil {
		c.t.Fatalf("withdraw a report: %v", err)
	}
	// Nor does one that only the city sees.
	in = draft("For the city")
	in.PrivacyLevel, in.Visibility = "anonymous", "officials"
	private, err := c.user.CreateReport(c.t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err != nil {
		c.t.Fatalf("file a report for the city: %v", err)
	}
	want = append(want, move(c.t, olga, private, "in_progress", "Seen"))
	// A follower of a report is as private as its reporter.
	bens := file(c.t, ben, "Followed")
	follow(c.t, c.user, bens)
	// So is who reports abuse.
	abuse := map[string]string{"reason": "personal_data", "text": "It names somebody"}
	if err := c.user.Do(c.t.Context(), http.MethodPost, "/reports/"+bens.ID.String()+"/abuse", abuse, nil); err != nil {
		c.t.Fatalf("report abuse: %v", err)
	}
	// And the author of a comment, on an own report or another's.
	for _, report := range []client.Report{bens, c.reports[0]} {
		comment(c.t, c.user, report, true)
	}
	want = append(want, move(c.t, olga, bens, "in_progress", "Seen"))
	want = append(want, c.addPhoto(c.reports[2]), sight{string(event.CommentedKey), c.reports[0].ID, c.versionOf(c.reports[0])})
	// The words of a verdict are for officials, whoever they name.
	want = append(want, move(c.t, olga, c.reports[0], "resolved", "Done"))
	giveVerdict(c.t, c.user, c.reports[0], false, c.said())
	c.screen.await(len(want))
	return want
}

// said is what the canary says of a resolution to officials alone.
func (c *canary) said() string { return "It is as it was. " + c.user.ID }

// converse has the canary answer a question. It returns what the canary is to see.
func (c *canary) converse(olga *client.Client, report client.Report) sight {
	c.t.Helper()
	askReporter(c.t, olga, report, "Which of the two doors?")
	answerQuestion(c.t, c.user, report, c.words)
	return sight{questionAsked, report.ID, c.versionOf(report)}
}

// addPhoto adds a photo to a report of the canary's, and returns what the
// canary is to see once it can be shown.
func (c *canary) addPhoto(report client.Report) sight {
	c.t.Helper()
	photo := c.upload(c.user, report, smallPicture(c.t))
	if v := c.verdictOn(c.user, report, photo); v.State != "ready" {
		c.t.Fatalf("the photo is %s, %s", v.State, v.Reason)
	}
	return sight{string(event.PhotoReadyKey), report.ID, c.versionOf(report)}
}

// versionOf returns the present version of a report.
func (c *canary) versionOf(report client.Report) int64 {
	c.t.Helper()
	var now client.Report
	if err := c.user.Do(c.t.Context(), http.MethodGet, "/reports/"+report.ID.String(), nil, &now); err != nil {
		c.t.Fatalf("read the report: %v", err)
	}
	return now.Version
}

// makeTrouble has the canary's requests and messages fail in every way that
// might make somebody write down too much.
func (c *canary) makeTrouble() {
	report, name := c.reports[0].ID, "Nama"
	ask := func(method, path string, in any) error { return c.user.Do(c.t.Context(), method, path, in, nil) }
	if err := ask(http.MethodPost, "/reports/"+report.String()+"/vote", map[string]string{"vote_type": "upvote"}); client.StatusOf(err) != http.StatusForbidden {
		c.t.Errorf("the canary votes on its own anonymous report: %v", err)
	}
	_ = ask(http.MethodGet, "/reports?q="+name+"&cursor="+c.user.ID, nil)
	_ = ask(http.MethodGet, "/notifications?cursor="+c.user.ID, nil)
	_ = ask(http.MethodPost, "/notifications/read-all", map[string]string{"last_event_id": c.user.ID})
	expired := c.As(c.user.ID, token(jwt.MapClaims{"sub": c.user.ID, "role": c.user.ID}))
	_ = expired.Do(c.t.Context(), http.MethodPost, "/reports", draft("x"), nil)

	// A constraint whose violation PostgreSQL explains with the whole row.
	lift := forbid(c.t, c.reportDB, "reporters", "reporter_id = ''")
	in := draft("Refused")
	in.PrivacyLevel = "anonymous"
	if _, err := c.user.CreateReport(c.t.Context(), in); client.StatusOf(err)/100 != 5 {
		c.t.Errorf("a broken table answers %v", err)
	}
	lift()
	c.spoilMessages()
}

// spoilMessages makes dead letters of messages to the canary.
func (c *canary) spoilMessages() {
	report, ch, key := c.reports[0].ID, c.channel(), event.VoteReceivedKey
	dead := c.wires[1]
	foreign := c.message(key, uuid.New(), c.user.ID, voteBody(report, 90)) // sealed for another report
	broken := c.message(key, report, c.user.ID, `{"report_id":`)
	for _, msg := range []amqp.Publishing{foreign, broken} {
		c.publish(ch, key, msg)
		dead.await(c.t, msg.MessageId)
		c.awaitDeadLetter(topology.Queue(key), msg.MessageId)
	}
	// Here, too, PostgreSQL shows the row, which is that of the canary's stream.
	lift := forbid(c.t, c.notificationDB, "streams", "last_seq < 0")
	refused := c.message(key, report, c.user.ID, voteBody(report, 91))
	c.publish(ch, key, refused)
	dead.await(c.t, refused.MessageId)
	lift()
	replay := map[string]any{"selection": map[string]any{"queue": topology.Queue(key)}}
	if err := c.userOf("operator", "operator").Do(c.t.Context(), http.MethodPost, "/admin/dlq/replays", replay, nil); err != nil {
		c.t.Errorf("replay: %v", err)
	}
}

// forbid adds a constraint that only new rows have to keep, until lift.
func forbid(t *testing.T, db *pgxpool.Pool, table, condition string) (lift func()) {
	t.Helper()
	execute(t, db, fmt.Sprintf(`alter table %s add constraint forbidden check (%s) not valid`, table, condition))
	return func() { execute(t, db, `alter table `+table+` drop constraint forbidden`) }
}

// selfDescriptions are paths at which Go programs like to tell about
// themselves.
var selfDescriptions = []string{
	"/metrics", "/debug/vars", "/debug/pprof/", "/debug/pprof/cmdline",
	"/debug/pprof/goroutine?debug=2", "/debug/pprof/heap", "/",
}

// forTheAdopter is what nobody gets but an account that signs in where a guest was.
const forTheAdopter = "GET /guests/adoption"

// forTheReporter is what nobody but a report's reporter gets.
const forTheReporter = "GET /reports/{id}/outlook"

// forTheDialogue is where officials, and nobody but them and the reporter, read the words
// of an answer.
const forTheDialogue = "GET /reports/{id}/dialogue"

// searchAnswers asks for everything that the documents know, as everyone but
// the canary.
func (c *canary) searchAnswers() {
	contact := map[string]string{"address": "other@surel.test", "language": "id", "zone": "Asia/Jakarta"}
	if err := c.userOf("other-resident", "resident").Do(c.t.Context(), http.MethodPut, "/me/contact", contact, nil); err != nil {
		c.t.Errorf("somebody else gives an address: %v", err)
	}
	connection := c.connect(c.reports[0].ID)
	firm := c.sendToFirm(c.reports[2].ID)
	// The other system knows who the canary is, and says so.
	c.update(c.report.url(), connection, c.reports[1].ID, "The crew comes on Monday", c.user.ID, c.address)
	values := c.pathValues()
	for _, path := range selfDescriptions {
		c.searchOperations(c.worker, path)
		c.searchOperations(c.photo, path)
	}
	for _, p := range []*process{c.report, c.notification} {
		operations := c.describe(p).operations(values)
		if p == c.report {
			files := map[string][]string{}
			for _, id := range append(values["id"], "2") { // a category
				files["file"] = append(files["file"], id+".xml", id+".json")
			}
			operations = append(operations, c.describeAt(p, "/open311/openapi.json").operations(files)...)
			// The document cannot say that one of two parameters is required.
			operations = append(operations, operation{http.MethodGet, "/map/assets?asset=lamps/L-7", nil, "GET /map/assets"})
		}
		for _, path := range selfDescriptions {
			operations = append(operations, operation{http.MethodGet, path, nil, path})
			c.searchOperations(p, path)
		}
		answered := make(map[string]bool) // templates with an answer that may show something
		if p == c.report {
			// The rest that a link opens is for TestAuthorisation: it has 60 turns a minute.
			job := operation{http.MethodGet, "/reports/job", nil, "GET /reports/job"}
			answered[job.template] = c.searchAnswer(p, job, "firm", firm.Token())
		}
		for _, role := range []string{"", "resident", "official", "operator", "auditor", "connection"} {
			token := ""
			switch role {
			case "":
			case "connection":
				token = connection.Token()
			default:
				token = c.userOf("other-"+role, role).Token()
			}
			for _, op := range operations {
				if c.searchAnswer(p, op, role, token) {
					answered[op.template] = true
				}
			}
		}
		for _, op := range operations {
			if strings.HasPrefix(op.template, "GET ") && !answered[op.template] && op.template != forTheReporter && op.template != forTheAdopter {
				c.t.Errorf("%s was never answered with 2xx: the test proves nothing about it", op.template)
				answered[op.template] = true // told once
			}
		}
	}
}

// searchOperations looks at what operators see: it is not about persons either.
func (c *canary) searchOperations(p *process, path string) {
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Patience)
	defer cancel()
	_, answer, err := operation{http.MethodGet, path, nil, path}.send(ctx, p.operations(), "")
	if err != nil {
		c.t.Errorf("GET %s: %v", path, err)
	}
	c.leaks.check("GET "+path+" as an operator", answer)
}

// searchAnswer makes one request, looks at its answer, and reports whether
// it was a good one.
func (c *canary) searchAnswer(p *process, op operation, role, token string) (good bool) {
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Patience)
	defer cancel()
	status, answer, err := op.send(ctx, p.url(), token)
	for status == http.StatusServiceUnavailable && wait.For(ctx, time.Second) == nil { // a starved machine: nothing was done
		c.leaks.check(fmt.Sprintf("%s %s as %q", op.method, op.path, role), answer)
		status, answer, err = op.send(ctx, p.url(), token)
	}
	if err != nil {
		c.t.Errorf("%s %s: %v", op.method, op.path, err)
	}
	leaks := c.leaks
	if role == "official" && op.template == forTheDialogue {
		leaks = c.person
	}
	if role == "official" && (op.template == forTheDialogue || bytes.Contains(answer, []byte(`"acts":`))) { // what only officials read of a report
		answer = bytes.ReplaceAll(answer, []byte(c.said()), nil)
	}
	leaks.check(fmt.Sprintf("%s %s as %q", op.method, op.path, role), answer)
	if status >= http.StatusInternalServerError {
		c.t.Errorf("%s %s as %q: answered %d %s", op.method, op.path, role, status, answer)
	}
	return status/100 == 2
}

// pathValues returns what can stand in the paths of the documents.
func (c *canary) pathValues() map[string][]string {
	values := map[string][]string{"queue": {topology.Queue(event.VoteReceivedKey)}, "name": {"retention", "320.jpg"}}
	for _, source := range []struct {
		db  *pgxpool.Pool
		sql string
	}{
		{c.reportDB, `select id::text from reports union all (select id::text from outbox_messages limit 8) union all select id::text from photos`},
		{c.notificationDB, `select id::text from notifications limit 4`},
		{c.notificationDB, `select id::text from dead_letters union select id::text from replays`},
		{c.notificationDB, `select id::text from webhook_endpoints union all (select id::text from deliveries limit 4)`},
	} {
		rows, err := source.db.Query(c.t.Context(), source.sql)
		if err != nil {
			c.t.Fatalf("collect ids: %v", err)
		}
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				c.t.Fatalf("collect ids: %v", err)
			}
			values["id"] = append(values["id"], id)
		}
	}
	return values
}

// searchWebhooks looks at what another system was sent.
func (c *canary) searchWebhooks() {
	c.other.await(4*len(c.reports) + 2) // filed, two votes, moved; a photo, a comment
	requests, _ := c.other.seen()
	for _, request := range requests {
		c.leaks.check("a webhook", []byte(request))
	}
}

// searchWires looks at what went through the broker, and at what lies there
// after the consumer has died, as an operator and as a program would.
func (c *canary) searchWires() {
	c.notification.kill()
	vote(c.t, c.signIn("Ben", "resident"), c.reports[1], "upvote")
	move(c.t, c.signIn("Olga", "official"), c.reports[1], "resolved", "Done")
	c.checkOutboxPublished()

	for _, path := range []string{"/api/definitions/%s", "/api/queues/%s", "/api/exchanges/%s", "/api/bindings/%s", "/api/connections", "/api/consumers/%s", "/api/policies/%s"} {
		c.leaks.check(path, c.rawManagement(http.MethodGet, path, ""))
	}
	ch, lying := c.channel(), 0
	for _, q := range c.queues() {
		if q.Exclusive {
			continue // a spy's own, or the relay's: numbers of shards, from other replicas
		}
		const peek = `{"count": 1000, "ackmode": "ack_requeue_true", "encoding": "auto"}`
		c.leaks.check("a look into "+q.Name, c.rawManagement(http.MethodPost, "/api/queues/%s/"+q.Name+"/get", peek))
		for d, ok := get(c.t, ch, q.Name); ok; d, ok = get(c.t, ch, q.Name) {
			c.searchDelivery("in "+q.Name, d)
			lying++
		}
	}
	if lying < 2 {
		c.t.Errorf("%d messages lay in the queues: the test proves nothing", lying)
	}
	for i, wire := range c.wires {
		seen, _ := wire.all()
		if len(seen) == 0 {
			c.t.Errorf("nothing went through wire %d: the test proves nothing", i)
		}
		for _, d := range seen {
			c.searchDelivery("through "+d.Exchange, d)
		}
	}
}

// awaitPushes returns when a push to the canary was tried, which no push service
// takes: what failed some times makes the others wait.
func (c *canary) awaitPushes() {
	c.t.Helper()
	eventually.True(c.t, "a push is tried", func() bool {
		execute(c.t, c.notificationDB, `update deliveries set due_at = now() where channel = 'push' and attempts = 0 and due_at > now()`)
		var tried bool
		err := c.notificationDB.QueryRow(c.t.Context(), `select exists (select from deliveries where channel = 'push' and attempts > 0)`).Scan(&tried)
		return err == nil && tried
	})
}

// checkOutboxPublished returns when the relay has sent everything.
func (c *canary) checkOutboxPublished() {
	c.t.Helper()
	eventually.True(c.t, "the outbox is empty", func() bool {
		var waiting int
		err := c.reportDB.QueryRow(c.t.Context(), `select count(*) from outbox_messages where status <> 'published'`).Scan(&waiting)
		return err == nil && waiting == 0
	})
}

func get(t *testing.T, ch *amqp.Channel, queue string) (amqp.Delivery, bool) {
	t.Helper()
	d, ok, err := ch.Get(queue, true)
	if err != nil {
		t.Fatalf("get from %s: %v", queue, err)
	}
	return d, ok
}

// searchDelivery looks at the whole of a message.
func (c *canary) searchDelivery(where string, d amqp.Delivery) {
	c.t.Helper()
	c.leaks.check("the body of a message "+where, d.Body)
	envelope := fmt.Sprintf("%+v %q %q", d.Headers, d.Headers, // numbers and text
		[]string{d.RoutingKey, d.MessageId, d.CorrelationId, d.ReplyTo, d.Type, d.UserId, d.AppId})
	c.leaks.check("the envelope of a message "+where, []byte(envelope))
}

// searchTables reads both databases: what is private stands in the tables that are
// named here, and nowhere else.
func (c *canary) searchTables() {
	for db, private := range map[*pgxpool.Pool][]string{c.reportDB: {"reporters", "commenters", "answers", "verdicts"}, c.notificationDB: {"streams"}} {
		for _, table := range tables(c.t, db) {
			var text string
			row := db.QueryRow(c.t.Context(), `select coalesce(string_agg(r::text, E'\n'), '') from `+table+` r`)
			if err := row.Scan(&text); err != nil {
				c.t.Fatalf("read %s: %v", table, err)
			}
			secret := c.user.ID
			if table == "answers" {
				secret = c.words
				c.person.check("table "+table, []byte(text))
			}
			if !slices.Contains(private, table) {
				c.leaks.check("table "+table, []byte(text))
			} else if !strings.Contains(text, secret) {
				c.t.Errorf("table %s does not know the canary: the test looks in the wrong place", table)
			}
		}
	}
}

func tables(t *testing.T, db *pgxpool.Pool) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), `select table_name from information_schema.tables where table_schema = 'public'`)
	if err != nil {
		t.Fatalf("list tables: %v", err)
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatalf("list tables: %v", err)
		}
		names = append(names, name)
	}
	return names
}

// searchProcesses reads everything that the services wrote, at the level
// debug.
func (c *canary) searchProcesses() {
	for _, p := range []*process{c.worker, c.photo} {
		c.leaks.check("the log of "+p.path, []byte(p.log.String()))
	}
	for _, p := range []*process{c.report, c.notification} {
		log := p.log.String()
		c.leaks.check("the log of "+p.path, []byte(log))
		if len(p.log.messages("request")) == 0 {
			c.t.Errorf("%s logged no request: the test proves nothing", p.path)
		}
	}
}
