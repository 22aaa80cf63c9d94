package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/client"
)

// Rows and event are written together or not at all: whichever of them the
// database refuses at the commit, nothing of the change is left.
func TestRollbackLeavesNeitherRowNorEvent(t *testing.T) {
	t.Parallel()
	for table, column := range map[string]string{"outbox_messages": "report_version", "reports": "version"} {
		t.Run("commit refused for "+table, func(t *testing.T) {
			t.Parallel()
			c := startStack(t)
			ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
			officials, anas := watch(t, olga), watch(t, ana)
			report := file(t, ana, "Dark crossing")
			before := contents(t, c.reportDB)

			lift := refuseCommits(t, c.reportDB, table, column)
			_, created := ana.CreateReport(t.Context(), draft("Never filed"))
			_, voted := ben.Vote(t.Context(), report.ID, "upvote")
			_, moved := olga.SetStatus(t.Context(), report.ID, "in_progress", "")
			for what, err := range map[string]error{"create": created, "vote": voted, "status": moved} {
				if client.StatusOf(err) != http.StatusInternalServerError {
					t.Errorf("%s while commits are refused: %v", what, err)
				}
			}
			for table, want := range before {
				if got := contents(t, c.reportDB)[table]; got != want {
					t.Errorf("%s changed though nothing was committed:\n%s\nbefore:\n%s", table, got, want)
				}
			}

			lift()
			second := file(t, ana, "Filed after all")
			anas.check([]sight{vote(t, ben, report, "upvote"), move(t, olga, report, "in_progress", "")})
			officials.check([]sight{sightOf(report), sightOf(second)})
		})
	}
}

// refuseCommits makes every commit fail that inserted into table or changed
// the column, until lift.
func refuseCommits(t *testing.T, db *pgxpool.Pool, table, column string) (lift func()) {
	t.Helper()
	execute(t, db, `create function refuse() returns trigger language plpgsql as
		$$ begin raise exception 'refused by the test' using errcode = 'check_violation'; end $$`)
	execute(t, db, fmt.Sprintf(`create constraint trigger refuse after insert or update of %s on %s
		deferrable initially deferred for each row execute function refuse()`, column, table))
	return func() { execute(t, db, "drop function refuse() cascade") }
}

func execute(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// contents returns what the tables of a change hold. Of the outbox it takes
// only what the relay never touches.
func contents(t *testing.T, db *pgxpool.Pool) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for table, columns := range map[string]string{
		"reports": "r.*", "reporters": "r.*", "status_history": "r.*", "votes": "r.*",
		"outbox_messages": "r.id, r.routing_key", "idempotency_keys": "r.key_hash",
	} {
		var text string
		row := db.QueryRow(t.Context(), fmt.Sprintf(
			`select coalesce(string_agg(x::text, E'\n' order by x::text), '') from (select %s from %s r) x`, columns, table))
		if err := row.Scan(&text); err != nil {
			t.Fatalf("read %s: %v", table, err)
		}
		all[table] = text
	}
	return all
}
