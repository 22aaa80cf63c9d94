package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// While the databases are away for long, no group has a message in hand, which the broker
// would count and give up: here at its second return, of which one is ours. Each message
// has its effect once, when they are back.
func TestLongOutageMakesNoDeadLetter(t *testing.T) { //nolint:funlen // one outage, step by step
	t.Parallel()
	const each = 5 // messages of each group an outage
	broker, reports, notifications := rabbittest.StartServer(t), pgtest.StartServer(t), pgtest.StartServer(t)
	broker.SetConsumerTimeout(3 * time.Minute)
	broker.SetDeliveryLimit("/", `^queue\.[a-z_]+$`, 1)
	c := prepareStackAt(t, broker.URL(), broker.ManagementURL())
	c.switchGuestsOn() // so that photos wait for an official
	connect := func(address string, programs ...*process) *pgxpool.Pool {
		for _, p := range programs {
			p.env["DATABASE_URL"] = address
		}
		pool := must(pgxpool.New(context.WithoutCancel(t.Context()), address))
		t.Cleanup(pool.Close)
		return pool
	}
	c.reportDB = connect(reports.Create(migrations.Report), c.report, c.photo)
	c.notificationDB = connect(notifications.Create(migrations.Notification), c.notification, c.worker)
	c.start()
	c.startPhotoWorker()
	officials, ana := watch(t, c.signIn("Olga", "official")), c.signIn("Ana", "resident")
	other := openOtherSystem(t)
	other.register(c, c.signIn("Pavel", "operator"))
	filed, done := 0, 0
	created, webhooks, adoptions, photos := topology.Queue(event.ReportCreatedKey), "queue.webhooks", "queue.adoptions", "queue.photo_checks"
	for _, fault := range []struct {
		name        string
		down, bring func(*pgtest.Server)
	}{
		{"stopped", (*pgtest.Server).Stop, (*pgtest.Server).Start},
		{"frozen", (*pgtest.Server).Pause, (*pgtest.Server).Resume},
	} {
		var guests []*visitor
		for i := range each {
			v := c.visitor()
			v.want(http.StatusCreated, "POST", "/guests", "", nil)
			v.file("Pothole")
			account := token(jwt.MapClaims{"sub": fmt.Sprint(fault.name, i), "name": "Akun", "role": "resident"})
			v.want(http.StatusOK, "POST", "/session", "", nil, "Authorization", "Bearer "+account)
			guests = append(guests, v)
		}
		filed += each
		officials.await(filed)
		other.await(filed)

		fault.down(notifications)
		var report client.Report
		for _, guest := range guests {
			report = file(t, ana, "Pothole")
			guest.want(http.StatusOK, "POST", "/guests/adoption", "", nil)
		}
		filed += each
		if err := devserver.Freeze(c.photo.cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		for range each {
			c.upload(ana, report, smallPicture(t))
		}
		c.awaitPublished(time.Time{})
		fault.down(reports)
		_ = c.photo.cmd.Process.Signal(syscall.SIGCONT)
		ch := c.channel()
		eventually.NothingMissing(t, fault.name+": nothing is in hand", func() string {
			for _, name := range []string{created, webhooks, adoptions, photos} {
				q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
				if err != nil || q.Messages != each || q.Consumers != 0 {
					return fmt.Sprintf("%s has %d messages and %d consumers, want %d and 0 (error %v)", name, q.Messages, q.Consumers, each, err)
				}
			}
			return ""
		})
		fault.bring(reports)
		fault.bring(notifications)
		done += each
		officials.await(filed)
		other.await(filed)
		for _, group := range []struct {
			db             *pgxpool.Pool
			queue, effects string
			n              int
		}{
			{c.notificationDB, created, `notifications where type = 'report.created'`, filed},
			{c.notificationDB, webhooks, `deliveries where state = 'done'`, filed},
			{c.notificationDB, adoptions, `streams where adopted_at is not null`, done},
			{c.reportDB, photos, `photos where state = 'held'`, done},
		} {
			eventually.NothingMissing(t, fault.name+": each has its effect", func() string {
				var handled, effects, letters int
				err := group.db.QueryRow(t.Context(), `select (select count(*) from processed_messages where consumer = $1),
					(select count(*) from `+group.effects+`), (select count(*) from dead_letters)`, group.queue).Scan(&handled, &effects, &letters)
				if err != nil || handled != group.n || effects != group.n || letters != 0 {
					return fmt.Sprintf("%s has %d messages handled, %d effects and %d dead letters, want %d, %[5]d and 0 (error %[6]v)", group.queue, handled, effects, letters, group.n, err)
				}
				return ""
			})
		}
		t.Logf("%s: %d reports to officials and webhooks, %d adoptions, %d photos: each has its effect once, no dead letter", fault.name, filed, done, done)
	}
	for _, queue := range c.queues() {
		if queue.Messages != 0 && strings.HasSuffix(queue.Name, ".dlq") {
			t.Errorf("%s has %d messages, want none", queue.Name, queue.Messages)
		}
	}
}
