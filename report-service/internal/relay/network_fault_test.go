package relay_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// Whatever the network does to the connection in the middle of a backlog,
// nothing is lost, nothing fails, nothing is inverted, and what was in flight
// is all that is published twice.
func TestNetworkFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		name   string
		toxics []string
	}{
		{"cut", []string{`{"type": "reset_peer", "stream": "upstream", "attributes": {"timeout": 0}}`}},
		{"half open, confirms get lost", []string{`{"type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`}},
		{"half open, messages get lost", []string{`{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`}},
		{"black hole", []string{
			`{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`,
			`{"type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`,
		}},
		{"confirms delayed", []string{`{"type": "latency", "stream": "downstream", "attributes": {"latency": 4000}}`}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			pool, direct := pgtest.Report(t), rabbittest.Vhost(t)
			bindQueue(t, direct, event.VoteReceivedKey)
			arrived := receive(t, direct, event.VoteReceivedKey)
			proxy, url := proxied(t, direct)
			rows := newRows(100, 60)
			insertMany(t, pool, rows)

			r := start(t, pool, url, func(c *relay.Config) {
				c.ConfirmTimeout = confirmTimeout
				c.MaxAttempts = 1 // a single attempt that was counted would fail the row
			})
			eventually.True(t, "full speed", func() bool { seen, _, _ := arrived.figures(); return seen > 500 })
			for _, toxic := range fault.toxics {
				if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
					t.Fatal(err)
				}
			}
			eventually.True(t, "the fault noticed", func() bool { return !r.State().Connected || countRows(t, pool, "pending") == 0 })
			// The network is whole again with another proxy: to take a toxic from a
			// connection that is just being closed may block this one for ever.
			proxy.Stop()
			startProxy(t, proxy.Listen, proxy.Upstream)
			arrived.wait(t, rows)
			waitEmpty(t, pool)

			_, doubled, inverted := arrived.figures()
			failed := countRows(t, pool, "failed")
			t.Logf("%d rows: 0 lost, %d failed, %d inverted, %d published twice", len(rows), failed, inverted, doubled)
			if most := int(r.State().Connects) * unrecorded; failed != 0 || inverted != 0 || doubled > most {
				t.Errorf("%d failed, %d inverted, want none; %d doubled, want at most %d", failed, inverted, doubled, most)
			}
		})
	}
}

// proxied puts a proxy before the broker at direct.
func proxied(t *testing.T, direct string) (*toxiproxy.Proxy, string) {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	proxy := startProxy(t, "127.0.0.1:0", u.Host)
	u.Host = proxy.Listen
	return proxy, u.String()
}

func startProxy(t *testing.T, listen, upstream string) *toxiproxy.Proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, t.Name(), listen, upstream)
	// While nobody listens at a port, the machine may lend it to a connection.
	eventually.True(t, "the proxy has its port", func() bool { return proxy.Start() == nil })
	t.Cleanup(proxy.Stop)
	return proxy
}
