package pgpool_test

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// pooler is a proxy of the test server that lets startup say what becomes of the
// settings of a connection: it returns what it passes on, or a refusal. It returns the
// server's address through it.
func pooler(t *testing.T, startup func(settings map[string]string) (refusal string)) string {
	t.Helper()
	u, err := url.Parse(server(t, "sslmode=disable"))
	if err != nil {
		t.Fatal(err)
	}
	upstream := u.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { passOn(t, client, upstream, startup) })
		}
	})
	u.Host = listener.Addr().String()
	return u.String()
}

func passOn(t *testing.T, client net.Conn, upstream string, startup func(map[string]string) string) {
	defer client.Close()
	backend := pgproto3.NewBackend(client, client)
	begin, err := backend.ReceiveStartupMessage()
	message, ok := begin.(*pgproto3.StartupMessage)
	if err != nil || !ok {
		return // a request to cancel, or a client that left
	}
	if refusal := startup(message.Parameters); refusal != "" {
		backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: refusal})
		_ = backend.Flush()
		return
	}
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		t.Errorf("connect to the server: %v", err)
		return
	}
	defer server.Close()
	encoded, err := message.Encode(nil)
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := server.Write(encoded); err != nil {
		return
	}
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	_, _ = io.Copy(client, server)
}

// A pooler that refuses or drops our settings stops the start, in words; a proxy that
// passes them on is as good as the server itself.
func TestPoolersWithoutSessionsAreRefused(t *testing.T) {
	t.Parallel()
	own := func(name string) bool { return name == "user" || name == "database" || name == "application_name" }
	for name, tt := range map[string]struct {
		startup func(settings map[string]string) (refusal string)
		want    string
	}{
		"as installed": {func(map[string]string) string { return "unsupported startup parameter: jit" }, "unsupported startup parameter: jit"},
		"told to ignore settings": {func(settings map[string]string) string {
			for name := range settings {
				if !own(name) {
					delete(settings, name)
				}
			}
			return ""
		}, "must be PostgreSQL's own"},
		"a proxy": {func(map[string]string) string { return "" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := open(t, pooler(t, tt.startup))
			err := pgpool.SignIn(t.Context(), pool)
			if tt.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "DATABASE_URL: a connection pooler") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("start: %v, want %q", err, tt.want)
			}
			err = pool.Ping(t.Context()) // as each request, where the server was away at the start
			if pgpool.Classify(err) != pgpool.Away || !strings.Contains(pgpool.Describe(err), "a connection pooler") {
				t.Errorf("later: class %q, text %q; want away, and the pooler", pgpool.Classify(err), pgpool.Describe(err))
			}
		})
	}
}
