package e2e

import (
	"net/http"
	"testing"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/short"
)

// The types of notification about questions.
const (
	questionAsked    = "report.question.asked"
	questionReminded = "report.question.reminded"
	questionAnswered = "report.answered"
	questionExpired  = "report.question.expired"
)

// askReporter asks the reporter of a report something, as official.
func askReporter(t *testing.T, official *client.Client, report client.Report, text string) sight {
	t.Helper()
	if err := official.Do(t.Context(), http.MethodPost, "/reports/"+report.ID.String()+"/questions", map[string]string{"text": text}, nil); err != nil {
		t.Fatalf("ask: %v", err)
	}
	return sight{questionAsked, report.ID, report.Version}
}

// answerQuestion answers the open question about a report, as its reporter.
func answerQuestion(t *testing.T, reporter *client.Client, report client.Report, text string) sight {
	t.Helper()
	err := reporter.Do(t.Context(), http.MethodPost, "/reports/"+report.ID.String()+"/answers", map[string]string{"text": text}, nil, "Idempotency-Key", "answer")
	if err != nil {
		t.Fatalf("answer: %v", err)
	}
	return sight{questionAnswered, report.ID, report.Version}
}

// A reminder and the end of a question come to those whom they concern once, although
// report-service is killed in the middle of the job, thirty times; and the answer to a
// question likewise.
func TestQuestionsAreRemindedAndExpireOnce(t *testing.T) {
	t.Parallel()
	reports, killsEach := 5, short.Count(1, 3)
	c := startStack(t)
	ana, olga, pavel := c.signIn("Ana", "resident"), c.signIn("Olga", "official"), c.signIn("Pavel", "operator")
	anas, olgas := watch(t, ana), watch(t, olga)
	var filed []client.Report
	var wantAna, wantOlga []sight
	kills := 0
	for i := range reports {
		in := draft("Dark crossing")
		in.PrivacyLevel = client.PrivacyLevel([]string{"public", "anonymous"}[i%2])
		report, err := ana.CreateReport(t.Context(), in)
		if err != nil {
			t.Fatalf("file a report: %v", err)
		}
		filed = append(filed, report)
		wantOlga = append(wantOlga, sight{created, report.ID, 1})
		wantAna = append(wantAna, askReporter(t, olga, report, "Which of the two lamps?"))
	}
	anas.await(len(wantAna))
	olgas.await(len(wantOlga))
	execute(t, c.reportDB, `create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(2); return new; end $$`)
	execute(t, c.reportDB, `create trigger slow before insert on outbox_messages for each row when (new.routing_key like 'report.question.%') execute function slow()`)
	for _, report := range filed {
		for _, due := range []struct {
			sql  string
			want sight
		}{
			{`update questions set remind_at = now() where report_id = $1`, sight{questionReminded, report.ID, 1}},
			{`update questions set ends_at = now() where report_id = $1`, sight{questionExpired, report.ID, 1}},
		} {
			execute(t, c.reportDB, due.sql, report.ID)
			c.runSchedule(pavel, "reports", "questions")
			for range killsEach {
				if !c.killInStep(report) {
					break // the last kill came after the commit
				}
				kills++
			}
			if due.want.typ == questionReminded {
				wantAna = append(wantAna, due.want)
				anas.await(len(wantAna))
			} else {
				wantOlga = append(wantOlga, due.want)
				olgas.await(len(wantOlga))
			}
		}
	}
	t.Logf("killed %d times", kills)
	if kills < 2*reports { // the first of each is waited for
		t.Errorf("killed %d times in the middle of a step, must be %d at least", kills, 2*reports)
	}
	execute(t, c.reportDB, `drop trigger slow on outbox_messages`)
	askReporter(t, olga, filed[0], "And now?")
	wantAna = append(wantAna, sight{questionAsked, filed[0].ID, 1})
	wantOlga = append(wantOlga, answerQuestion(t, ana, filed[0], "The one at the bridge."))
	anas.check(wantAna)
	olgas.check(wantOlga)
}

// killInStep kills report-service while a step of the job writes, and starts it again. It
// returns false if nothing is left of what was due for the report. The lease of the run
// ends at once instead of after half a minute.
func (c *stack) killInStep(report client.Report) bool {
	c.t.Helper()
	var writes, done bool
	eventually.True(c.t, "a step writes, or has written", func() bool {
		err := c.reportDB.QueryRow(c.t.Context(), `
			select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'),
				state = 'expired' or remind_at is null and ends_at > now()
			from questions where report_id = $1`, report.ID).Scan(&writes, &done)
		return err == nil && (writes || done)
	})
	if done {
		return false
	}
	c.report.kill()
	// Its session would keep its locks until it has slept.
	execute(c.t, c.reportDB, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
	execute(c.t, c.reportDB, `update schedule_runs set lease_until = now(), resume_at = now() where state = 'running'`)
	c.report.start()
	c.awaitReady()
	return true
}
