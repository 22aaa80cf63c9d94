package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// PostgreSQL's log says which constraint was broken and not by which row: rows
// name people. That holds for the services, and for migrations, which copy rows.
func TestDatabaseLogNamesNobody(t *testing.T) {
	t.Parallel()
	const canary = "canary-7f3a"
	d := startPrivateDatabases(t)
	for _, role := range []string{"", "_owner"} {
		for name, refused := range map[string]string{
			"reports":       `insert into reporters (report_id, reporter_id) values (null, $1)`,
			"notifications": `insert into streams (name) values ($1), ($1)`,
		} {
			conn, err := pgx.Connect(t.Context(), d.url(name, role))
			if err != nil {
				t.Fatalf("connect to %s: %v", name, err)
			}
			_, err = conn.Exec(t.Context(), refused, canary)
			e, ok := errors.AsType[*pgconn.PgError](err)
			if !ok || !strings.Contains(e.Detail, canary) {
				t.Errorf("%s: error %v with detail, want one that shows the row to the client", name, err)
			} else if !strings.Contains(d.server.Log(), e.Message) {
				t.Errorf("%s: the log has no %q", name, e.Message)
			}
			_ = conn.Close(t.Context())
		}
	}
	for line := range strings.Lines(d.server.Log()) {
		if strings.Contains(line, canary) {
			t.Errorf("PostgreSQL's log names people: %s", line)
		}
	}
}
