package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	netmail "net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// Operators make mistakes at the servers while people use the city: the mail
// server refuses the sender, policies limit a queue and expire another, two queues
// are deleted with what they hold, and the services' roles lose their rights to
// write, table by table and all at once. What was accepted is shown once, nothing
// becomes a dead letter, no address is given up; each mistake can be seen by
// operators, and is over once it is undone.
func TestMistakesAtTheServers(t *testing.T) {
	t.Parallel()
	began := time.Now()
	b, d := startPrivateBroker(t, ""), startPrivateDatabases(t)
	c := prepareStackOn(t, b.server.URL(), b.server.ManagementURL(), d.superuser("reports"), d.superuser("notifications"))
	c.actAs(b, d, "")
	mails, other := c.openMailServer(), openOtherSystem(t)
	c.worker.env["MAIL_RETRY_DELAYS"] = strings.TrimSuffix(strings.Repeat("1s,", 20), ",")
	c.start()
	replicas := []*process{newProcess(t, "report-service", c.report.env), newProcess(t, "notification-service", c.notification.env)}
	for _, p := range replicas {
		p.start()
	}
	c.startPhotoWorker()
	pavel := c.userOf("pavel", "operator")
	other.register(c, pavel)
	conn := must(amqp.Dial(c.brokerURL))
	defer conn.Close()
	m := &mistakes{stack: c, operator: pavel, broker: conn}
	town := settleTown(c, mails)

	mails.refuseSender(true)
	limited := topology.Queue(event.ReportCreatedKey)
	m.pause(limited, true)
	lift := m.policy("limit", limited, "max-length", 3)
	town.live()
	m.awaitCircuit(event.ReportCreatedKey)
	m.awaitFinding(limited+" has max-length = 3", true)
	lift()
	m.pause(limited, false)

	m.loseQueues()
	mails.refuseSender(false)

	faults := 5 + m.revokeRights(d)
	m.awaitFinding(limited+" has max-length = 3", false)
	town.rest()
	town.check(other)
	sum := m.sum()
	fmt.Printf("%s %s faults=%d seconds=%.0f\n", town, sum, faults, time.Since(began).Seconds())
	if sum != (losses{}) {
		t.Errorf("the servers' mistakes cost: %s", sum)
	}
}

// Mistakes are made at the servers of a stack.
type mistakes struct {
	*stack
	operator *client.Client
	broker   *amqp.Connection
}

// pause has an operator pause the workers of a queue, or end that.
func (m *mistakes) pause(queue string, paused bool) {
	m.t.Helper()
	if err := m.operator.Insist(m.t.Context(), http.MethodPatch, "/admin/workers/"+queue, map[string]bool{"paused": paused}, nil); err != nil {
		m.t.Fatalf("pause %s: %v", queue, err)
	}
	eventually.True(m.t, "the workers of "+queue+" do as they are asked", func() bool {
		q, there := m.queue(queue)
		return there && (q.Consumers == 0) == paused
	})
}

// queue returns the state of a queue, and whether it is there.
func (m *mistakes) queue(name string) (q amqp.Queue, there bool) {
	m.t.Helper()
	ch, err := m.broker.Channel() // a queue that is not there closes it
	if err != nil {
		m.t.Fatalf("open a channel: %v", err)
	}
	defer func() { _ = ch.Close() }()
	q, err = ch.QueueDeclarePassive(name, true, false, false, false, nil)
	return q, err == nil
}

// policy applies an operators' policy to a queue, until it is lifted.
func (m *mistakes) policy(name, queue, setting string, value int) (lift func()) {
	m.t.Helper()
	path := "/api/operator-policies/%s/" + name
	definition := must(json.Marshal(map[string]any{
		"pattern": "^" + regexp.QuoteMeta(queue) + "$", "apply-to": "queues", "definition": map[string]int{setting: value},
	}))
	m.rawManagement(http.MethodPut, path, string(definition))
	return func() { m.rawManagement(http.MethodDelete, path, "") }
}

// awaitCircuit returns once the relay publishes nothing with the key, because its
// queue refuses it.
func (m *mistakes) awaitCircuit(key event.Key) {
	m.t.Helper()
	eventually.True(m.t, "the circuit of "+string(key)+" is open", func() bool {
		var stats struct {
			Relay struct {
				Open map[event.Key]string `json:"open_circuits"`
			}
		}
		err := m.operator.Do(m.t.Context(), http.MethodGet, "/admin/outbox/stats", nil, &stats)
		return err == nil && stats.Relay.Open[key] != ""
	})
}

// findings returns what operators are shown at the workers.
func (m *mistakes) findings() (all []finding) {
	var pools struct{ Findings []finding }
	if err := m.operator.Do(m.t.Context(), http.MethodGet, "/admin/workers", nil, &pools); err != nil {
		return nil
	}
	return pools.Findings
}

type finding struct{ What, Remedy string }

// awaitFinding returns once a finding is shown, or is not any more.
func (m *mistakes) awaitFinding(what string, shown bool) (f finding) {
	m.t.Helper()
	eventually.NothingMissing(m.t, fmt.Sprintf("finding %q is shown: %t", what, shown), func() string {
		all := m.findings()
		i := slices.IndexFunc(all, func(f finding) bool { return strings.Contains(f.What, what) })
		if i >= 0 {
			f = all[i]
		}
		if (i >= 0) != shown {
			return fmt.Sprintf("there are %v", all)
		}
		return ""
	})
	return f
}

// loseQueues deletes two queues with a backlog, lets a third expire with its own,
// and does what the findings say.
func (m *mistakes) loseQueues() {
	m.t.Helper()
	deleted := []string{topology.Queue(event.VoteReceivedKey), topology.Named("queue.webhooks")}
	expired := topology.Queue(event.StatusUpdatedKey)
	all := append(deleted, expired)
	for _, queue := range all {
		m.pause(queue, true)
	}
	for _, queue := range all {
		eventually.True(m.t, queue+" has a backlog", func() bool {
			q, there := m.queue(queue)
			return there && q.Messages > 4
		})
	}
	for _, queue := range deleted {
		m.rawManagement(http.MethodDelete, "/api/queues/%s/"+url.PathEscape(queue), "")
	}
	lift := m.policy("expire", expired, "expires", 500)
	var since time.Time
	for _, queue := range all {
		f := m.awaitFinding("queue "+queue+" was deleted with its messages", true)
		at, err := time.Parse(time.RFC3339, regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]+Z`).FindString(f.Remedy))
		if err != nil {
			m.t.Fatalf("the remedy has no time: %v", f)
		}
		if since.IsZero() || at.Before(since) {
			since = at
		}
	}
	lift()
	m.pause(expired, false)
	m.command(m.report, "republish", "-since", since.Format(time.RFC3339))
	m.command(m.notification, "republished", "-since", since.Format(time.RFC3339))
	for _, queue := range deleted { // which are there again, while nobody reads them
		m.pause(queue, false)
	}
	m.awaitFinding("was deleted with its messages", false)
}

// revokeRights takes from both services' roles the rights to insert and update, of
// some tables in turn and then of all for a while, and returns how often.
func (m *mistakes) revokeRights(d *privateDatabases) (faults int) {
	m.t.Helper()
	var both sync.WaitGroup
	var n atomic.Int64
	for name, db := range map[string]struct {
		pool   *pgxpool.Pool
		tables []string
		users  []*process
	}{
		"reports":       {m.reportDB, []string{"votes", "outbox_messages", "relay_shards", "photos"}, []*process{m.report, m.photo}},
		"notifications": {m.notificationDB, []string{"notifications", "processed_messages", "deliveries", "lanes"}, []*process{m.notification, m.worker}},
	} {
		both.Go(func() {
			role := "cityconnect_" + name
			for _, table := range append(db.tables, "all tables in schema public") {
				execute(m.t, db.pool, "revoke insert, update on "+table+" from "+role)
				m.awaitReadiness(table, db.users, http.StatusServiceUnavailable)
				if strings.HasPrefix(table, "all") {
					stay(m.t.Context(), revokedFor)
				}
				execute(m.t, db.pool, "grant insert, update on "+table+" to "+role)
				execute(m.t, db.pool, "revoke insert, update on schema_migrations from "+role)
				m.awaitReadiness(table, db.users, http.StatusOK)
				n.Add(1)
			}
		})
	}
	both.Wait()
	return int(n.Load())
}

// revokedFor is how long the roles write nothing at all: longer than the leases of
// the relay's shards and of the ledger's lanes.
const revokedFor = 20 * time.Second

// stay lets a fault last.
func stay(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}

// awaitReadiness returns once each of the processes answers with the status.
func (m *mistakes) awaitReadiness(what string, of []*process, status int) {
	m.t.Helper()
	for _, p := range of {
		eventually.True(m.t, fmt.Sprintf("%s: %s is ready: %d", what, p.path, status), func() bool {
			resp, err := http.Get(p.operations() + "/readyz")
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			return resp.StatusCode == status
		})
	}
}

// Losses are what the mistakes must not cost.
type losses struct{ deadLetters, outboxFailed, deliveriesDead, bounced int }

// String returns l as name=value pairs.
func (l losses) String() string {
	return fmt.Sprintf("dead_letters=%d outbox_failed=%d deliveries_dead=%d bounced=%d", l.deadLetters, l.outboxFailed, l.deliveriesDead, l.bounced)
}

func (m *mistakes) sum() (l losses) {
	m.t.Helper()
	for _, count := range []struct {
		of  *int
		db  *pgxpool.Pool
		sql string
	}{
		{&l.deadLetters, m.reportDB, `select count(*) from dead_letters`},
		{&l.deadLetters, m.notificationDB, `select count(*) from dead_letters`},
		{&l.outboxFailed, m.reportDB, `select count(*) from outbox_messages where status = 'failed'`},
		{&l.deliveriesDead, m.notificationDB, `select count(*) from deliveries where state not in ('done', 'waiting')`},
		{&l.bounced, m.notificationDB, `select count(*) from contacts where state <> 'active'`},
		{&l.bounced, m.notificationDB, `select count(*) from mail_bounces where hard`},
	} {
		var n int
		if err := count.db.QueryRow(m.t.Context(), count.sql).Scan(&n); err != nil {
			m.t.Fatalf("%s: %v", count.sql, err)
		}
		*count.of += n
	}
	return l
}

// A town is people who use the city all the time, and who ask again when they are
// refused.
type town struct {
	*stack
	ana, ben, olga  *client.Client
	rina            *client.Client // has an address
	anas, officials *screen
	first           client.Report
	mails           *mailServer

	stop    context.CancelFunc
	working sync.WaitGroup
	refused atomic.Int64

	lastVote int64                      // Ben's, on the first report
	mailed   int                        // moves of Rina's reports
	uploads  map[uuid.UUID]photographer // by photo
	counts   string

	mu       sync.Mutex
	accepted []sight // new reports
}

func settleTown(c *stack, mails *mailServer) *town {
	c.t.Helper()
	town := &town{
		stack: c, mails: mails, ana: c.signIn("Ana", "resident"), ben: c.signIn("Ben", "resident"), olga: c.signIn("Olga", "official"),
		rina: c.signIn("Rina", "resident"), uploads: make(map[uuid.UUID]photographer),
	}
	mails.giveAddress(town.rina, "rina@mail.test")
	if err := town.rina.Do(c.t.Context(), http.MethodPut, "/me/preferences", map[string]any{"email": []string{moved}}, nil); err != nil {
		c.t.Fatal(err)
	}
	town.anas, town.officials = watch(c.t, town.ana), watch(c.t, town.olga)
	town.first = file(c.t, town.ana, "Dark crossing")
	town.accepted = []sight{sightOf(town.first)}
	return town
}

// live has people file, vote, move and upload until they rest.
func (w *town) live() {
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop = stop
	w.t.Cleanup(w.rest)
	picture := smallPicture(w.t)
	for every, act := range map[time.Duration]func(){
		150 * time.Millisecond: func() { w.file(w.ana, "Under way") },
		160 * time.Millisecond: func() {
			value := -cmp.Or(w.lastVote, -1)
			w.insist("vote", func() error {
				_, err := w.ben.Vote(w.t.Context(), w.first.ID, map[int64]string{1: "upvote", -1: "downvote"}[value])
				return err
			})
			w.lastVote = value
		},
		700 * time.Millisecond: func() {
			report := w.file(w.rina, "To be mailed")
			w.insist("move", func() error {
				_, err := w.olga.SetStatus(w.t.Context(), report.ID, "in_progress", "Seen")
				return err
			})
			w.mailed++
		},
		2 * time.Second: func() {
			user, upload := w.userOf(uuid.NewString(), "resident"), uuid.New() // nobody adds so many
			report := w.file(user, "To be seen")
			w.insist("add a photo", func() error {
				photo, err := user.AddPhoto(w.t.Context(), report.ID, upload, "A lamp", picture)
				if err == nil {
					w.uploads[photo] = photographer{user, report}
				}
				return err
			})
		},
	} {
		w.working.Go(func() {
			for tick := time.Tick(every); ctx.Err() == nil; {
				act()
				select {
				case <-tick:
				case <-ctx.Done():
				}
			}
		})
	}
}

// file files a report.
func (w *town) file(user *client.Client, title string) (report client.Report) {
	key := uuid.NewString()
	w.insist("file a report", func() (err error) {
		report, err = user.CreateReport(w.t.Context(), draft(title), "Idempotency-Key", key)
		return err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = append(w.accepted, sightOf(report))
	return report
}

// insist asks until it is not refused for a while.
func (w *town) insist(what string, ask func() error) {
	for tick := time.Tick(200 * time.Millisecond); ; <-tick {
		err := ask()
		if err == nil || w.t.Context().Err() != nil {
			return
		}
		if client.StatusOf(err) != http.StatusServiceUnavailable {
			w.t.Errorf("%s: %v", what, err)
			return
		}
		w.refused.Add(1)
	}
}

// rest ends what people do, once it is accepted.
func (w *town) rest() {
	w.stop()
	w.working.Wait()
}

// check proves that everything that was accepted is there, once.
func (w *town) check(other *otherSystem) {
	w.t.Helper()
	w.checkRelayDone()
	filed, votes, moves := w.announced(created), w.announced(voted), w.announced(moved)
	lost := 0
	for _, s := range w.accepted {
		if !slices.Contains(filed, s) {
			lost++
		}
	}
	w.officials.check(filed)
	w.anas.check(votes)
	w.checkScore(w.first, w.lastVote)
	for photo, p := range w.uploads {
		if v := w.verdictOn(p.user, p.report, photo); v.State != "ready" {
			w.t.Errorf("a photo is %s (%s), want it ready", v.State, v.Reason)
		}
	}
	doubled := 0
	ids := make(map[string]bool)
	for _, m := range w.mails.await(1 + w.mailed) { // the code, and each move
		header, err := netmail.ReadMessage(strings.NewReader(m.raw))
		if err != nil {
			w.t.Fatal(err)
		}
		if id := header.Header.Get("Message-ID"); ids[id] {
			doubled++
		} else {
			ids[id] = true
		}
	}
	lost += 1 + w.mailed - len(ids)
	events := other.await(len(filed) + len(votes) + len(moves) + len(w.announced("report.photo.ready")))
	w.counts = fmt.Sprintf("accepted=%d refused=%d expected=%d lost=%d doubled=%d mails=%d mails_refused=%d photos=%d webhooks=%d",
		len(w.accepted), w.refused.Load(), len(filed)+len(votes), lost, doubled, w.mailed, w.mails.refusals(), len(w.uploads), len(events))
	if lost+doubled > 0 || len(moves) != w.mailed || len(w.accepted) != len(filed) {
		w.t.Errorf("%s; %d reports and %d moves are announced", w.counts, len(filed), len(moves))
	}
	if w.refused.Load() == 0 || w.mails.refusals() < 3 {
		w.t.Errorf("%d requests and %d mails were refused: the test proves nothing", w.refused.Load(), w.mails.refusals())
	}
}

// String returns the account as name=value pairs.
func (w *town) String() string { return w.counts }
