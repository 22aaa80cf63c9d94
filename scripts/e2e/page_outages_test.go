package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// lights are what the console's first screen says of some parts, by the light's name;
// all others must be good.
type lights map[string]string

const openLetter = "bad: Open: 1"

// seen waits until the lights are as they should be, the tab's title counts their causes
// (the open dead letter, and what is stopped), and the open dead letter is counted.
func (l lights) seen() browser.Action {
	want, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	causes := 1
	if len(l) > 1 && l["dead"] == openLetter {
		causes = 2
	}
	return browser.Until(fmt.Sprintf(`((want) => {
		const boxes = [...document.querySelectorAll('.light')];
		const said = (box) => box.dataset.state + ': ' + [...box.querySelectorAll('p')].map((p) => p.textContent).join(' ');
		return boxes.length === 14
			&& boxes.every((box) => want[box.dataset.light] ? said(box).includes(want[box.dataset.light]) : box.dataset.state === 'good')
			&& boxes.every((box) => box.dataset.state === 'good' || box.dataset.light === 'dead' || /^since \d/.test(box.querySelector('small').textContent))
			&& document.title.startsWith('(%[2]d) ') && document.querySelectorAll('.cause').length === %[2]d
			&& [...document.querySelectorAll('.tabs a')].some((tab) => tab.textContent === 'Dead letters1');
	})(%[1]s)`, want, causes))
}

// Whatever is stopped under an open console, its light turns within ten seconds and
// says why, and no other light lies: it stays good, or says what it cannot know.
// Each comes back by itself. An operator's count of dead letters never disappears.
func TestPageConsoleInOutages(t *testing.T) {
	t.Parallel()
	broker, database := rabbittest.StartServer(t), pgtest.StartServer(t)
	notifications, err := pgxpool.New(context.WithoutCancel(t.Context()), database.Create(migrations.Notification))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(notifications.Close)
	c := prepareStackOn(t, broker.URL(), broker.ManagementURL(), pgtest.Report(t), notifications)
	c.start()
	c.worker.start()
	c.startPhotoWorker()
	c.awaitConsumersOf("queue.webhooks")
	c.publish(c.channel(), event.VoteReceivedKey, c.message(event.VoteReceivedKey, uuid.New(), "ana", `{"no": "vote"}`))
	oskar := c.reader(c.signIn("Oskar", "operator")).open("ops", browser.Width(1366, 768))
	well := lights{"dead": openLetter}
	oskar.do(well.seen())

	const noDatabase = "unknown: PostgreSQL of notifications does not answer"
	const noBroker = "unknown: RabbitMQ does not answer"
	const noService = "unknown: report-service does not answer"
	const noWorker = "bad: delivery-worker does not run"
	for _, outage := range []struct {
		name        string
		stop, start func()
		want        lights
	}{
		{"PostgreSQL", database.Stop, database.Start, lights{
			"notifications-database": "bad: PostgreSQL of notifications refuses connections",
			"consumers":              "bad: They handle nothing: PostgreSQL of notifications does not answer",
			"dead":                   noDatabase, "mail": noDatabase, "push": noDatabase, "webhooks": noDatabase, "reconciliation": noDatabase, "jobs": noDatabase,
		}},
		{"RabbitMQ", broker.Stop, broker.Start, lights{
			"dead": openLetter, "broker": "bad: RabbitMQ refuses connections", "relay": "bad: It has no connection to the broker",
			"consumers": noBroker, "photos": noBroker, "mail": noBroker, "push": noBroker, "webhooks": noBroker,
		}},
		{"report-service behind the gateway", c.report.kill, c.report.start, lights{
			"dead": openLetter, "gateway": "bad: It reaches no replica of report-service",
			"reports-database": noService, "relay": noService, "outbox": noService, "photos": noService, "reconciliation": noService, "jobs": noService,
		}},
		{"delivery-worker", c.worker.kill, c.worker.start, lights{
			"dead": openLetter, "mail": noWorker, "push": noWorker, "webhooks": noWorker,
		}},
		{"photo-worker", c.photo.kill, c.photo.start, lights{
			"dead": openLetter, "photos": "bad: photo-worker does not run",
		}},
	} {
		outage.stop()
		stopped := time.Now()
		oskar.do(outage.want.seen())
		took := time.Since(stopped)
		t.Logf("%s: seen after %s", outage.name, took.Round(100*time.Millisecond))
		if took > 10*time.Second {
			t.Errorf("that %s is away was seen after %s, want at most 10 s", outage.name, took)
		}
		outage.start()
		oskar.do(well.seen())
	}
	oskar.checkFaults()
}
