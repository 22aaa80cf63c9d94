package e2e

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
)

// nowhere is a broker's address that nobody listens at.
const nowhere = "amqp://guest:guest@127.0.0.1:1/"

// A report that was answered with 201 is in the database alone when the process dies,
// because it had no broker. The next process announces it.
func TestReportServiceKilledBeforeItPublished(t *testing.T) {
	t.Parallel()
	c := prepareStack(t)
	c.notification.start()
	c.report.env["RABBITMQ_URL"] = nowhere
	c.report.start()
	ana, officials := c.signIn("Ana", "resident"), watch(t, c.signIn("Olga", "official"))

	report := file(t, ana, "Dark crossing")
	c.report.kill()
	if n, _ := officials.count(); n != 0 {
		t.Fatal("the notification arrived without a broker: the test proves nothing")
	}
	c.report.env["RABBITMQ_URL"] = c.brokerURL
	c.report.start()
	officials.check([]sight{sightOf(report)})
}

// The same at random moments of the publishing, under load.
func TestReportServiceKilledUnderLoad(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, officials := c.signIn("Ana", "resident"), watch(t, c.signIn("Olga", "official"))
	var accepted []sight
	for range 3 {
		accepted = append(accepted, c.fileAndKill(ana, 40)...)
		c.report.start()
	}
	committed := c.announced(created)
	officials.check(committed)
	have := make(map[sight]bool)
	for _, s := range committed {
		have[s] = true
	}
	for _, s := range accepted {
		if !have[s] {
			t.Errorf("%v was answered with 201 and is gone", s)
		}
	}
	t.Logf("%d accepted, %d committed, all shown once", len(accepted), len(committed))
}

// fileAndKill files n reports at once and kills report-service as soon as a
// quarter of them is accepted. It returns what was.
func (c *stack) fileAndKill(user *client.Client, n int) []sight {
	c.t.Helper()
	accepted := make(chan sight, n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			report, err := user.CreateReport(c.t.Context(), draft("Filed in a crash"))
			if err == nil {
				accepted <- sightOf(report)
			}
		})
	}
	var all []sight
	for range n / 4 {
		all = append(all, <-accepted)
	}
	c.report.kill()
	wg.Wait()
	close(accepted)
	for s := range accepted {
		all = append(all, s)
	}
	return all
}

// announced returns every event of a kind that report-service has committed.
func (c *stack) announced(typ string) []sight {
	c.t.Helper()
	rows, err := c.reportDB.Query(c.t.Context(),
		`select report_id, report_version from outbox_messages where routing_key = $1`, typ)
	if err != nil {
		c.t.Fatalf("read the outbox: %v", err)
	}
	defer rows.Close()
	var all []sight
	for rows.Next() {
		var id uuid.UUID
		var version int64
		if err := rows.Scan(&id, &version); err != nil {
			c.t.Fatalf("read the outbox: %v", err)
		}
		all = append(all, sight{typ, id, version})
	}
	return all
}

// Clients that watch do not notice that the process behind their stream died
// with messages in hand: each comes back with the id it saw last and goes on
// from there.
func TestNotificationServiceKilledMidStream(t *testing.T) {
	t.Parallel()
	const deaths, between = 3, 50
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	officials, anas := watch(t, c.signIn("Olga", "official")), watch(t, ana)
	load := c.startLoad(ana, file(t, ana, "Dark crossing"), 4)
	for range deaths {
		shown, _ := anas.count()
		anas.await(shown + between)
		c.notification.kill()
		c.notification.start()
	}
	load.stop()
	officials.check(c.announced(created))
	anas.check(c.announced(voted))
	for name, s := range map[string]*screen{"officials": officials, "Ana": anas} {
		if got := s.stream.Connects(); got <= deaths {
			t.Errorf("%s connected %d times through %d deaths", name, got, deaths)
		}
	}
}
