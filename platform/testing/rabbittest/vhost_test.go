package rabbittest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The broker gives up its first virtual host halfway, without permissions, and
// closes the connection. The test gets one in which it may work.
func TestVhostGivenUpHalfway(t *testing.T) {
	t.Parallel()
	management, err := url.Parse(SharedManagementURL(t))
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: management.Scheme, Host: management.Host})
	}}
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			forward.ServeHTTP(w, r)
			return
		}
		forward.ServeHTTP(httptest.NewRecorder(), r)
		name := strings.TrimPrefix(r.URL.Path, "/api/vhosts/")
		client := Management(t, SharedManagementURL(t))
		t.Cleanup(func() { _, _ = client.DeleteVhost(name) })
		if _, err := client.ClearPermissionsIn(name, management.User.Username()); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(proxy.Close)
	through := *management
	through.Host = strings.TrimPrefix(proxy.URL, "http://")

	made := newVhost(t, mustEnv(t, "TEST_RABBITMQ_URL"), through.String())
	t.Cleanup(func() {
		u, _ := url.Parse(made)
		_, _ = Management(t, SharedManagementURL(t)).DeleteVhost(strings.TrimPrefix(u.Path, "/"))
	})
	conn, err := amqp.Dial(made)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}
