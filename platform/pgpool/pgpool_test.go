package pgpool_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// server returns the URL of the test server with parameters.
func server(t *testing.T, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(os.Getenv("TEST_DATABASE_URL"))
	if err != nil || u.Host == "" {
		t.Fatal("TEST_DATABASE_URL is not set: run `make test`")
	}
	query := u.Query()
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

func open(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgpool.Open(t.Context(), address, "city-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// The server confirms the settings of our connections.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, setting, own string // own is what the URL says, if it does
		want               string
	}{
		{"who we are", "application_name", "", "city-test"},
		{"a lock", "lock_timeout", "", "5s"},
		{"a statement", "statement_timeout", "", "8s"},
		{"an idle transaction", "idle_in_transaction_session_timeout", "", "5s"},
		{"a statement, overridden", "statement_timeout", "statement_timeout=123s", "123s"},
		{"who we are, overridden", "application_name", "application_name=other", "other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := server(t)
			if tt.own != "" {
				address = server(t, tt.own)
			}
			var got string
			if err := open(t, address).QueryRow(t.Context(), `select current_setting($1)`, tt.setting).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("%s is %q, want %q", tt.setting, got, tt.want)
			}
		})
	}
}

// The limits end what hangs, and the connection goes on.
func TestServerEndsWhatHangs(t *testing.T) {
	t.Parallel()
	pool := open(t, server(t, "statement_timeout=50ms", "pool_max_conns=1"))
	_, err := pool.Exec(t.Context(), `select pg_sleep(600)`)
	if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "57014" {
		t.Errorf("a statement that hangs: %v, want that the server cancelled it", err)
	}
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// A server that has become a standby refuses to write. The pool does not keep
// the connection to it: the next one may lead to the primary.
func TestReadOnlyServerIsLeft(t *testing.T) {
	t.Parallel()
	pool := open(t, server(t, "pool_max_conns=1"))
	if _, err := pool.Exec(t.Context(), `set default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		want pgpool.Class
	}{{"a write there", pgpool.Away}, {"a write after it", pgpool.Unknown}} {
		_, err := pool.Exec(t.Context(), `create temporary table written ()`)
		if got := pgpool.Classify(err); got != tt.want {
			t.Errorf("%s: class %q, want %q (error: %v)", tt.name, got, tt.want, err)
		}
	}
}

// A start with a URL that the server refuses says why in words; a server that is
// away is waited for.
func TestSignIn(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	unknown, nowhere := *u, *u
	unknown.User = url.UserPassword("nobody_of_that_name", "geheim")
	nowhere.Path = "/no_such_database"
	for address, want := range map[string]string{
		u.String():       "",
		unknown.String(): "the database refuses the ",
		nowhere.String(): "the server has no such database (SQLSTATE 3D000)",
		"postgres://somebody:geheim@127.0.0.1:1/nowhere": "",
	} {
		err := pgpool.SignIn(t.Context(), open(t, address))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), "DATABASE_URL: "+want)) {
			t.Errorf("%s: error %v, want %q", address, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: the error shows the password: %v", address, err)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]int32{
		server(t):                                 20,
		server(t, "pool_max_conns=3"):             3,
		"host=127.0.0.1 user=u pool_max_conns=3":  3,
		"host=127.0.0.1 user=u dbname=reports":    20,
		server(t, "application_name=pool_max=30"): 20,
	} {
		if got := open(t, address).Config().MaxConns; got != want {
			t.Errorf("%s: up to %d connections, want %d", address, got, want)
		}
	}
}

// The database may come up after us, and one that says nothing is given up.
func TestAbsentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	for name, addr := range map[string]string{"silent": silent.Addr().String(), "gone": gone.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := open(t, "postgres://user:password@"+addr+"/city?sslmode=disable")
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // ends a test that has failed
			defer cancel()
			if err := pool.Ping(ctx); err == nil || ctx.Err() != nil {
				t.Errorf("Ping: %v, want an error by the pool's own patience", err)
			}
		})
	}
}

func TestMalformedURL(t *testing.T) {
	t.Parallel()
	_, err := pgpool.Open(t.Context(), "postgres://user:s3cret@host:port/city", "city-test")
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("Open: %v, want an error without the password", err)
	}
}
