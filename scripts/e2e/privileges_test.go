package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// Each service does all it has to with the users that the stacks give it, and
// these users can do nothing that belongs to another: they break no table, read
// no foreign database and no foreign queue, and have no say over the broker.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "bandung."} {
		t.Run("prefix="+prefix, func(t *testing.T) {
			t.Parallel()
			b, d := startPrivateBroker(t, prefix), startPrivateDatabases(t)
			c := prepareStackAt(t, b.server.URL(), b.server.ManagementURL())
			c.reportDB, c.notificationDB = d.superuser("reports"), d.superuser("notifications")
			names := must(event.NewTopology(prefix))
			c.actAs(b, d, prefix)
			c.doEverything(names)
			if refused := refusals(b.server.Log()); refused != nil {
				t.Errorf("the broker has refused %d operations, such as %s", len(refused), refused[0])
			}
			b.checkRefusals(names)
			d.checkRefusals()
		})
	}
}

// actAs has each program sign in at the servers as its own user.
func (c *stack) actAs(b *privateBroker, d *privateDatabases, prefix string) {
	for p, settings := range map[*process]map[string]string{
		c.report:       {"DATABASE_URL": d.url("reports", ""), "RABBITMQ_URL": b.url("report"), "RABBITMQ_MANAGEMENT_URL": ""},
		c.photo:        {"DATABASE_URL": d.url("reports", ""), "RABBITMQ_URL": b.url("photo"), "RABBITMQ_MANAGEMENT_URL": b.managementURL("photo")},
		c.notification: {"DATABASE_URL": d.url("notifications", ""), "RABBITMQ_URL": b.url("notification"), "RABBITMQ_MANAGEMENT_URL": b.managementURL("notification")},
		c.worker:       {"DATABASE_URL": d.url("notifications", ""), "RABBITMQ_URL": b.url("notification"), "RABBITMQ_MANAGEMENT_URL": b.managementURL("notification")},
	} {
		p.env["TOPOLOGY_PREFIX"] = prefix
		for name, value := range settings {
			p.env[name] = value
		}
	}
}

// doEverything has the services use every right that they need.
func (c *stack) doEverything(names event.Topology) {
	c.t.Helper()
	c.notification.start()
	c.report.start()
	ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	anas, officials := watch(c.t, ana), watch(c.t, olga)
	report := file(c.t, ana, "Dark crossing")
	officials.check([]sight{sightOf(report)})
	want := []sight{vote(c.t, ben, report, "upvote"), move(c.t, olga, report, "in_progress", "Seen")}
	anas.check(want)

	// A message that fails goes by the retry queues to the dead letters, and back.
	lift := forbid(c.t, c.notificationDB, "notifications", "created_at < '2000-01-01'")
	want = append(want, vote(c.t, ben, report, "downvote"))
	operator := c.userOf("operator", "operator")
	stats := func(ctx context.Context) (n int) {
		var page struct{ Items []struct{ State string } }
		if operator.Do(ctx, http.MethodGet, "/admin/dlq/messages?state=open", nil, &page) != nil {
			return -1
		}
		return len(page.Items)
	}
	eventually.True(c.t, "the vote is a dead letter", func() bool { return stats(c.t.Context()) == 1 })
	lift()
	replay := map[string]any{"selection": map[string]any{"queue": names.Queue(event.VoteReceivedKey)}}
	if err := operator.Do(c.t.Context(), http.MethodPost, "/admin/dlq/replays", replay, nil); err != nil {
		c.t.Errorf("replay: %v", err)
	}
	eventually.True(c.t, "the dead letter is resolved", func() bool { return stats(c.t.Context()) == 0 })
	anas.check(want)

	policies, err := rabbittest.Management(c.t, c.managementURL).ListPoliciesIn("/")
	if err != nil || len(policies) != 4 {
		c.t.Errorf("%d policies are applied (error: %v), want 4", len(policies), err)
	}
	c.photo.start()
	c.awaitConsumersOf(names.Queue(event.PhotoUploadedKey))
	if v := c.verdictOn(ana, report, c.upload(ana, report, smallPicture(c.t))); v.State != "ready" {
		c.t.Errorf("the photo is %s, want it ready", v.State)
	}
	mails, other := c.openMailServer(), openOtherSystem(c.t)
	c.worker.start()
	c.awaitConsumersOf(names.Named("queue.webhooks"))
	other.enter(operator)
	mails.giveAddress(ana, "ana@mail.test")
	move(c.t, olga, report, "resolved", "Repaired")
	other.await(1)
	enterCaller(c.t, olga, fileFor(c.t, olga, "Called"), "budi@mail.test")
	mails.proofLink("budi@mail.test")
	for _, p := range []*process{c.report, c.notification, c.photo, c.worker} {
		for _, sign := range []string{"ACCESS_REFUSED", "permission denied", "not_authorized"} {
			if strings.Contains(p.log.String(), sign) {
				c.t.Errorf("%s was refused something: %s", p.path, p.log.tail(20))
			}
		}
	}
}

// refusals returns the lines of a broker's log about operations that it has refused.
func refusals(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "access_refused") || strings.Contains(line, "access denied") {
			lines = append(lines, line)
		}
	}
	return lines
}

// The rights in the manual's table are those that users.sh gives.
func TestManualHasTheRightsOfUsers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	granted := map[string]string{} // what is put, by its path
	management := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read %s: %v", r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		granted[r.URL.EscapedPath()] = string(body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer management.Close()
	secrets := passwords(t, "password", "report_password", "notification_password", "photo_password")
	script(t, "rabbitmq/users.sh", []string{management.Listener.Addr().String()}, "SECRETS="+secrets, "TOPOLOGY_PREFIX=bandung.")

	manual := string(must(os.ReadFile(filepath.Join(root(), "docs", "production.md"))))
	rows := map[string]string{"| report-service": "report", "| photo-worker": "photo", "| notification-service, delivery-worker": "notification"}
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(manual) {
		cells := strings.Split(strings.TrimSuffix(line, " |\n"), " | ")
		user, ok := rows[cells[0]]
		if !ok || len(cells) != 5 {
			continue
		}
		delete(rows, cells[0])
		var want [5]string // configure, write, read, tag, topics
		for i, cell := range cells[1:] {
			cell = strings.NewReplacer(`\|P`, `|bandung\.`, `\|`, "|", "^P", `^bandung\.`).Replace(cell)
			if cell == "as for configure" {
				cell = "`" + want[0] + "`"
			}
			for j, text := range quoted.FindAllStringSubmatch(cell, -1) {
				switch {
				case j == 0:
					want[i] = text[1]
				case strings.HasPrefix(text[1], "^"): // a second pattern
					want[4] = text[1]
				}
			}
		}
		var rights struct{ Configure, Write, Read, Tags string }
		var topics struct{ Read string }
		for path, into := range map[string]any{
			"/api/permissions/%2F/cityconnect_" + user: &rights, "/api/users/cityconnect_" + user: &rights,
			"/api/topic-permissions/%2F/cityconnect_" + user: &topics,
		} {
			if body := granted[path]; body != "" {
				if err := json.Unmarshal([]byte(body), into); err != nil {
					t.Errorf("%s was put as %s: %v", path, body, err)
				}
			}
		}
		if got := [5]string{rights.Configure, rights.Write, rights.Read, rights.Tags, topics.Read}; got != want {
			t.Errorf("%s: users.sh grants\n%q, the manual says\n%q", user, got, want)
		}
	}
	if len(rows) > 0 {
		t.Errorf("docs/production.md has no rows for %v", rows)
	}
}

// A privateBroker is a node with the users that deploy makes.
type privateBroker struct {
	t       *testing.T
	server  *rabbittest.Server
	secrets string
}

func startPrivateBroker(t *testing.T, prefix string) *privateBroker {
	t.Helper()
	b := &privateBroker{t, rabbittest.StartServer(t), passwords(t, "password", "report_password", "notification_password", "photo_password")}
	address := must(url.Parse(b.server.ManagementURL()))
	password, _ := address.User.Password() // of the administrator
	if err := os.WriteFile(filepath.Join(b.secrets, "password"), []byte(password), 0o600); err != nil {
		t.Fatalf("write secret: %v", err)
	}
	for range 2 { // the second time with nothing to do
		script(t, "rabbitmq/users.sh", []string{address.Host}, "SECRETS="+b.secrets, "TOPOLOGY_PREFIX="+prefix)
	}
	return b
}

// In the virtual host that is made for a cluster, queues have copies that say nothing
// of their type, as those of dead letters do.
func TestVirtualHostOfACluster(t *testing.T) {
	t.Parallel()
	b := startPrivateBroker(t, "")
	management := must(url.Parse(b.server.ManagementURL()))
	for range 2 { // the second time with nothing to do
		script(t, "rabbitmq/users.sh", []string{management.Host}, "SECRETS="+b.secrets, "RABBITMQ_VHOST=city")
	}
	address := must(url.Parse(b.server.URL()))
	address.Path = "/city"
	conn, err := amqp.Dial(address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := must(conn.Channel()).QueueDeclare("votes.dlq", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	queue, err := must(devserver.Management(b.server.ManagementURL(), time.Minute)).GetQueue("city", "votes.dlq")
	if err != nil || queue.Type != "quorum" {
		t.Errorf("a queue of the virtual host is of type %q (error %v), want quorum", queue.Type, err)
	}
}

// url returns the address of the broker for a service.
func (b *privateBroker) url(service string) string {
	return fmt.Sprintf("amqp://cityconnect_%s:secret-%s_password@%s/", service, service, b.server.Addr())
}

func (b *privateBroker) managementURL(service string) string {
	address := must(url.Parse(b.server.ManagementURL()))
	address.User = url.UserPassword("cityconnect_"+service, "secret-"+service+"_password")
	return address.String()
}

// checkRefusals tries what the users must not do.
func (b *privateBroker) checkRefusals(names event.Topology) { //nolint:funlen // a table of what each must not do
	votes := names.Queue(event.VoteReceivedKey)
	consume := func(queue string) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error {
			_, err := ch.Consume(queue, "", false, false, false, false, nil)
			return err
		}
	}
	get := func(queue string) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error { _, _, err := ch.Get(queue, false); return err }
	}
	declare := func(queue string) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(queue, true, false, false, false, nil)
			return err
		}
	}
	remove := func(queue string) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error { _, err := ch.QueueDelete(queue, false, false, false); return err }
	}
	publish := func(exchange, key string) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error {
			closed := ch.NotifyClose(make(chan *amqp.Error, 1))
			if err := ch.Confirm(false); err != nil {
				return err
			}
			confirm, err := ch.PublishWithDeferredConfirm(exchange, key, false, false, amqp.Publishing{})
			if err != nil {
				return err
			}
			select {
			case err := <-closed:
				return err
			case <-confirm.Done():
				return nil
			}
		}
	}
	spy := func(own, exchange string) func(*amqp.Channel) error {
		return func(ch *amqp.Channel) error {
			if _, err := ch.QueueDeclare(own, false, true, true, false, nil); err != nil {
				return errors.New("declare own queue: " + err.Error()) // no refusal that counts
			}
			return ch.QueueBind(own, "#", exchange, false, nil)
		}
	}
	for service, attempts := range map[string]map[string]func(*amqp.Channel) error{
		"report": {
			"consume votes":                consume(votes),
			"get a dead letter":            get(votes + ".dlq"),
			"get a message that waits":     get(names.Retry("1s")),
			"delete a queue":               remove(votes),
			"declare a queue of its own":   declare("mine"),
			"declare a queue of the other": declare(votes + ".more"),
			"publish past the exchange":    publish("", votes),
			"publish a dead letter":        publish(names.DeadLetterExchange(), "dlq."+votes),
			"publish to screens":           publish(names.LiveExchange(), ""),
			"copy all messages":            spy(names.WakeExchange()+".spy", names.Exchange()),
			"copy what goes to screens":    spy(names.WakeExchange()+".spy", names.LiveExchange()),
			"tell how far photos are":      publish(names.ProgressExchange(), ""),
		},
		"photo": {
			"consume votes":              consume(votes),
			"get a dead letter":          get(votes + ".dlq"),
			"delete a queue":             remove(votes),
			"declare a queue of its own": declare("mine"),
			"publish as report-service":  publish(names.Exchange(), string(event.VoteReceivedKey)),
			"publish to screens":         publish(names.LiveExchange(), ""),
			"copy all messages":          spy(names.Retry("spy"), names.Exchange()),
			"copy what goes to screens":  spy(names.Retry("spy"), names.LiveExchange()),
			"copy how far photos are":    spy(names.Retry("spy"), names.ProgressExchange()),
		},
		"notification": {
			"declare a queue of its own": declare("mine"),
			"publish as report-service":  publish(names.Exchange(), string(event.VoteReceivedKey)),
			"wake report-service":        publish(names.WakeExchange(), ""),
			"copy the wake-ups":          spy(names.LiveExchange()+".spy", names.WakeExchange()),
			"tell how far photos are":    publish(names.ProgressExchange(), ""),
		},
	} {
		conn, err := amqp.Dial(b.url(service))
		if err != nil {
			b.t.Fatalf("dial as %s: %v", service, err)
		}
		for what, attempt := range attempts {
			ch := must(conn.Channel())
			err := attempt(ch)
			if refusal, ok := errors.AsType[*amqp.Error](err); !ok || refusal.Code != amqp.AccessRefused {
				b.t.Errorf("%s-service may %s (error: %v)", service, what, err)
			}
			_ = ch.Close()
		}
		_ = conn.Close()
	}
	b.checkManagementRefusals()
}

// checkManagementRefusals tries what the users must not ask of the management API.
func (b *privateBroker) checkManagementRefusals() {
	for service, requests := range map[string][]string{
		"report":       {"GET /api/queues", "GET /api/users", "GET /api/overview", "PUT /api/policies/%2F/mine", "GET /api/definitions"},
		"photo":        {"GET /api/users", "GET /api/definitions", "PUT /api/permissions/%2F/cityconnect_photo", "DELETE /api/vhosts/%2F"},
		"notification": {"GET /api/users", "PUT /api/users/mine", "PUT /api/permissions/%2F/cityconnect_notification", "GET /api/definitions", "DELETE /api/vhosts/%2F"},
	} {
		for _, request := range requests {
			method, path, _ := strings.Cut(request, " ")
			req := must(http.NewRequestWithContext(b.t.Context(), method, b.managementURL(service)+path,
				strings.NewReader(`{"password":"x","tags":"administrator","configure":".*","write":".*","read":".*","pattern":".*","definition":{"max-length":1}}`)))
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				b.t.Fatalf("%s: %v", request, err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
				b.t.Errorf("%s-service may %s: %s", service, request, res.Status)
			}
		}
	}
}

// privateDatabases are those that deploy makes, migrated.
type privateDatabases struct {
	t       *testing.T
	server  *pgtest.Server
	secrets string
}

func startPrivateDatabases(t *testing.T) *privateDatabases {
	t.Helper()
	d := &privateDatabases{t, pgtest.StartServer(t),
		passwords(t, "reports_password", "reports_owner_password", "notifications_password", "notifications_owner_password")}
	for range 2 { // the second time with nothing to do
		d.make()
		for name, db := range map[string]migrations.Database{"reports": migrations.Report, "notifications": migrations.Notification} {
			if err := migrations.Up(t.Context(), d.url(name, "_owner"), db); err != nil {
				t.Fatalf("migrate: %v", err)
			}
		}
	}
	return d
}

// make runs the script that makes the databases, as superuser.
func (d *privateDatabases) make() {
	d.t.Helper()
	password, _ := must(url.Parse(d.server.URL("postgres"))).User.Password()
	d.makeAs(must(url.Parse(d.server.URL("postgres"))).User.Username(), password)
}

// makeAs runs it as another user, and returns what it says.
func (d *privateDatabases) makeAs(user, password string) (said string) {
	d.t.Helper()
	address := must(url.Parse(d.server.URL("postgres")))
	return script(d.t, "postgres/databases.sh", nil, "SECRETS="+d.secrets, "PGHOST="+address.Hostname(), "PGPORT="+address.Port(),
		"PGUSER="+user, "PGPASSWORD="+password)
}

// The databases are made by a role without the rights of a superuser, as on managed servers,
// and the rights of the services' roles are the same.
func TestDatabasesWithoutASuperuser(t *testing.T) {
	t.Parallel()
	d := &privateDatabases{t, pgtest.StartServer(t),
		passwords(t, "reports_password", "reports_owner_password", "notifications_password", "notifications_owner_password")}
	conn := must(pgx.Connect(t.Context(), d.server.URL("postgres")))
	if _, err := conn.Exec(t.Context(), `create role managed login createdb createrole password 'managed'`); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time with nothing to do
		if said := d.makeAs("managed", "managed"); strings.Count(said, "only a superuser may set log_error_verbosity") != 2 {
			t.Errorf("the script says %q, must warn of each database's log", said)
		}
		for name, db := range map[string]migrations.Database{"reports": migrations.Report, "notifications": migrations.Notification} {
			if err := migrations.Up(t.Context(), d.url(name, "_owner"), db); err != nil {
				t.Fatalf("migrate: %v", err)
			}
		}
	}
	d.checkRefusals()
}

// Where the provider makes databases and roles, the statements of the manual give the
// service's role the same rights as the script.
func TestDatabasesMadeByHand(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := &privateDatabases{t, pgtest.StartServer(t), ""}
	_, manual, _ := strings.Cut(string(must(os.ReadFile(filepath.Join(root(), "docs/postgresql.md")))), "```sql\n")
	manual, _, _ = strings.Cut(manual, "```")
	provider := must(pgx.Connect(ctx, d.server.URL("postgres")))
	for name, db := range map[string]migrations.Database{"reports": migrations.Report, "notifications": migrations.Notification} {
		role := "cityconnect_" + name
		for _, sql := range []string{
			"create role " + role + " login password 'secret-" + name + "_password'",
			"create role " + role + "_owner login password 'secret-" + name + "_owner_password'",
			"create database " + role + " owner " + role + "_owner",
		} {
			if _, err := provider.Exec(ctx, sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		owner := must(pgx.Connect(ctx, d.url(name, "_owner")))
		if _, err := owner.Exec(ctx, strings.ReplaceAll(manual, "reports", name)); err != nil {
			t.Fatalf("the manual's statements for %s: %v", name, err)
		}
		_ = owner.Close(ctx)
		if err := migrations.Up(ctx, d.url(name, "_owner"), db); err != nil {
			t.Fatalf("migrate: %v", err)
		}
		service := must(pgx.Connect(ctx, d.url(name, "")))
		if _, err := service.Exec(ctx, "delete from erasures; select version from schema_migrations"); err != nil {
			t.Errorf("the service of %s: %v", name, err)
		}
		_ = service.Close(ctx)
	}
	_ = provider.Close(ctx)
	d.checkRefusals()
}

// url returns the address of a database for its service, or for its owner with
// the suffix _owner.
func (d *privateDatabases) url(name, suffix string) string {
	address := must(url.Parse(d.server.URL("cityconnect_" + name)))
	address.User = url.UserPassword("cityconnect_"+name+suffix, "secret-"+name+suffix+"_password")
	return address.String()
}

func (d *privateDatabases) superuser(name string) *pgxpool.Pool {
	d.t.Helper()
	pool, err := pgxpool.New(context.WithoutCancel(d.t.Context()), d.server.URL("cityconnect_"+name))
	if err != nil {
		d.t.Fatalf("open %s: %v", name, err)
	}
	d.t.Cleanup(pool.Close)
	return pool
}

// checkRefusals tries what the services' roles must not do.
func (d *privateDatabases) checkRefusals() {
	ctx := d.t.Context()
	for name, other := range map[string]string{"reports": "notifications", "notifications": "reports"} {
		conn, err := pgx.Connect(ctx, d.url(name, ""))
		if err != nil {
			d.t.Fatalf("connect to %s: %v", name, err)
		}
		attempts := []string{
			"create table mine (id int)", "create temporary table mine (id int)", "create schema mine",
			"create role mine", "create database mine", "create extension pg_trgm",
			"alter role cityconnect_" + name + " superuser", "set role cityconnect_" + name + "_owner",
			"alter database cityconnect_" + name + " set statement_timeout = 1", "drop database cityconnect_" + name,
			"set log_error_verbosity = default",
			"update schema_migrations set version = 0", "delete from schema_migrations", "insert into schema_migrations values (99, false)",
		}
		for _, table := range tables(d.t, d.superuser(name)) {
			attempts = append(attempts, "drop table "+table+" cascade", "truncate "+table+" cascade",
				"alter table "+table+" add column mine int", "create index on "+table+" ((1))", "alter table "+table+" disable trigger all",
				"create trigger mine before insert on "+table+" execute function suppress_redundant_updates_trigger()")
		}
		for _, sql := range attempts {
			_, err := conn.Exec(ctx, sql)
			if !refused(err) {
				d.t.Errorf("the service of %s may: %s (error: %v)", name, sql, err)
			}
		}
		_ = conn.Close(ctx)
		foreign := strings.Replace(d.url(name, ""), "/cityconnect_"+name+"?", "/cityconnect_"+other+"?", 1)
		if conn, err := pgx.Connect(ctx, foreign); !refused(err) {
			d.t.Errorf("the service of %s may connect to %s (error: %v)", name, other, err)
			if err == nil {
				_ = conn.Close(ctx)
			}
		}
	}
}

// refused tells whether PostgreSQL said that the role may not.
func refused(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "42501" // insufficient_privilege
}

// A database that the service's role owned, as it once was, is taken over with
// all its data.
func TestDatabaseOfTheServiceIsTakenOver(t *testing.T) {
	t.Parallel()
	server, ctx := pgtest.StartServer(t), t.Context()
	d := &privateDatabases{t, server, passwords(t, "reports_password", "reports_owner_password", "notifications_password", "notifications_owner_password")}
	root := must(pgx.Connect(ctx, server.URL("postgres")))
	defer root.Close(ctx)
	for _, sql := range []string{"create role cityconnect_reports login password 'secret-reports_password'", "create database cityconnect_reports owner cityconnect_reports"} {
		if _, err := root.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := migrations.Up(ctx, d.url("reports", ""), migrations.Report); err != nil {
		t.Fatalf("migrate as it was: %v", err)
	}
	asService := must(pgx.Connect(ctx, d.url("reports", "")))
	defer asService.Close(ctx)

	d.make()
	if err := migrations.Up(ctx, d.url("reports", "_owner"), migrations.Report); err != nil {
		t.Errorf("migrate as the owner: %v", err)
	}
	if _, err := asService.Exec(ctx, "drop table reports cascade"); !refused(err) {
		t.Errorf("drop table: error %v, want a refusal", err)
	}
	var categories int
	if err := asService.QueryRow(ctx, "select count(*) from categories").Scan(&categories); err != nil || categories == 0 {
		t.Errorf("%d categories are left (error: %v)", categories, err)
	}
	if _, err := asService.Exec(ctx, "update categories set name = name"); err != nil {
		t.Errorf("update: %v", err)
	}
}

// passwords makes a folder of secrets, each of which is named in its value.
func passwords(t *testing.T, names ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("secret-"+name), 0o600); err != nil {
			t.Fatalf("write secret: %v", err)
		}
	}
	return folder
}

// script runs a script of the folder deploy, and returns what it says.
func script(t *testing.T, name string, args []string, env ...string) (said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root(), "deploy", name), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// A folder without the passwords, or a wrong address, is refused before a server is
// asked: otherwise the roles and users of a running city would lose theirs.
func TestScriptsRefuseWhatWouldTakePasswordsAway(t *testing.T) {
	t.Parallel()
	database, broker := passwords(t, "reports_password", "reports_owner_password", "notifications_password"), passwords(t, "password", "report_password", "photo_password")
	for _, tt := range []struct{ name, args, env, want string }{
		{"postgres/databases.sh", "", "SECRETS=" + database, "notifications_owner_password is missing or empty"},
		{"postgres/databases.sh", "", "", "SECRETS: must be the folder of the passwords"},
		{"rabbitmq/users.sh", "127.0.0.1:1", "SECRETS=" + broker, "notification_password is missing or empty"},
		{"rabbitmq/users.sh", "127.0.0.1:1", "", "SECRETS: must be the folder of the passwords"},
		{"rabbitmq/users.sh", "http://127.0.0.1:15672", "SECRETS=" + broker, "must be called with the host and port"},
		{"rabbitmq/users.sh", "", "SECRETS=" + broker, "must be called with the host and port"},
		{"secrets.sh", "", "", "must be the folder to make"},
		{"secrets.sh", t.TempDir(), "", "POSTGRES_ADDRESS: must be host:port"},
		{"secrets.sh", t.TempDir(), "POSTGRES_ADDRESS=127.0.0.1:5432", "RABBITMQ_ADDRESS: must be host:port"},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root(), "deploy", tt.name), strings.Fields(tt.args)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PGHOST=127.0.0.1", "PGPORT=1", tt.env}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want) || strings.Contains(string(out), "onnection refused") {
			t.Errorf("%s %s with %q said %s (error: %v), must say %q", tt.name, tt.args, tt.env, out, err, tt.want)
		}
	}
}
