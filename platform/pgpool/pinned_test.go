package pgpool_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// database makes a database on the test server, as options say, and returns its
// address.
func database(t *testing.T, options string) string {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("pinned_%d", time.Now().UnixNano())
	if _, err := admin.Exec(t.Context(), `create database `+name+` `+options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = admin.Exec(context.Background(), `drop database `+name+` with (force)`) // the test's own context has ended
		_ = admin.Close(context.Background())
	})
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// Defaults of the database or the role change nothing for us.
func TestSettingsArePinned(t *testing.T) {
	t.Parallel()
	address := database(t, "")
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	name := conn.Config().Database
	for setting, value := range map[string]string{
		"default_transaction_isolation": "serializable", "client_encoding": "LATIN1", "jit": "on", "statement_timeout": "1h",
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(`alter database %s set %s = '%s'`, name, setting, value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool := open(t, address)
	for setting, want := range map[string]string{
		"transaction_isolation": "read committed", "client_encoding": "UTF8", "jit": "off", "statement_timeout": "8s",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), `select current_setting($1)`, setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q (error %v), want %q", setting, got, err, want)
		}
	}
	var text string
	if err := pool.QueryRow(t.Context(), `select 'Jalan 日本 ' || chr(8364)`).Scan(&text); err != nil || text != "Jalan 日本 €" {
		t.Errorf("read %q (error %v)", text, err)
	}
}

// A database that cannot keep every text is refused, and the log says why.
func TestOtherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		pool := open(t, database(t, "encoding '"+encoding+"' locale 'C' template template0"))
		err := pool.Ping(t.Context())
		if pgpool.Classify(err) != pgpool.Away || !strings.Contains(pgpool.LogText(err), "must be UTF8") {
			t.Errorf("%s: class %q, logged as %q", encoding, pgpool.Classify(err), pgpool.LogText(err))
		}
	}
}
