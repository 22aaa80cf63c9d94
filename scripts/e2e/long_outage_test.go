package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// While the database of notifications is away for long, no group has a message in hand,
// which the broker would count and give up: here at its second return, of which one is
// ours. Everybody gets everything once, when the database is back.
func TestLongOutageMakesNoDeadLetter(t *testing.T) {
	t.Parallel()
	const each = 5 // reports an outage
	broker, database := rabbittest.StartServer(t), pgtest.StartServer(t)
	broker.SetConsumerTimeout(100 * time.Second)
	broker.SetDeliveryLimit("/", `^queue\.[a-z_]+$`, 1)
	c := prepareStackAt(t, broker.URL(), broker.ManagementURL())
	address := database.Create(migrations.Notification)
	c.notificationDB = must(pgxpool.New(context.WithoutCancel(t.Context()), address))
	t.Cleanup(c.notificationDB.Close)
	c.notification.env["DATABASE_URL"], c.worker.env["DATABASE_URL"] = address, address
	c.start()
	officials, ana := watch(t, c.signIn("Olga", "official")), c.signIn("Ana", "resident")
	other := openOtherSystem(t)
	other.register(c, c.signIn("Pavel", "operator"))
	filed := 0
	more := func() {
		for range each {
			file(t, ana, "Pothole")
			filed++
		}
	}
	more()
	other.await(filed)
	for _, fault := range []struct {
		name        string
		down, bring func()
	}{
		{"stopped", database.Stop, database.Start},
		{"frozen", database.Pause, database.Resume},
	} {
		fault.down()
		more()
		ch := c.channel()
		waiting := map[string]int{topology.Queue(event.ReportCreatedKey): each, "queue.webhooks": each, "queue.adoptions": 0}
		eventually.NothingMissing(t, fault.name+": nothing is in hand", func() string {
			for name, n := range waiting {
				q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
				if err != nil || q.Messages != n || q.Consumers != 0 {
					return fmt.Sprintf("%s has %d messages and %d consumers, want %d and 0 (error %v)", name, q.Messages, q.Consumers, n, err)
				}
			}
			return ""
		})
		fault.bring()
		officials.await(filed)
		other.await(filed)
	}
	for _, queue := range c.queues() {
		if queue.Messages != 0 && strings.HasSuffix(queue.Name, ".dlq") {
			t.Errorf("%s has %d messages, want none", queue.Name, queue.Messages)
		}
	}
	var letters, handled int
	if err := c.notificationDB.QueryRow(t.Context(), `
		select (select count(*) from dead_letters), (select count(*) from processed_messages where consumer = $1)`,
		topology.Queue(event.ReportCreatedKey)).Scan(&letters, &handled); err != nil {
		t.Fatal(err)
	}
	if letters != 0 || handled != filed {
		t.Errorf("%d dead letters and %d of %d messages handled, want none and all", letters, handled, filed)
	}
}
