package e2e

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

const (
	issuer   = "https://id.e2e.test"
	audience = "cityconnect"
	secret   = "e2e-secret-e2e-secret-e2e-secret"
	pushKey  = "ZTJlLXB1c2gtZTJlLXB1c2gtZTJlLXB1c2gtZTJlLXA"
	pushHost = "push.test"
)

// A stack is both services with their workers, their databases, their broker and a gateway, of one test.
type stack struct {
	*client.Client // nobody's, through the gateway
	t              *testing.T

	reportDB, notificationDB *pgxpool.Pool
	brokerURL, managementURL string
	keyring                  *event.Keyring
	report, notification     *process
	worker                   *process // sends webhooks; started where they matter
	photo                    *process // looks at photos; started where they matter
	gateway                  *httptest.Server
	backups                  string // a folder
}

// prepareStack makes everything but starts neither service.
func prepareStack(t *testing.T) *stack {
	t.Helper()
	return prepareStackAt(t, rabbittest.Vhost(t), rabbittest.SharedManagementURL(t))
}

// prepareStackAt does so at a broker of the test's own.
func prepareStackAt(t *testing.T, brokerURL, managementURL string) *stack {
	t.Helper()
	return prepareStackOn(t, brokerURL, managementURL, pgtest.Report(t), pgtest.Notification(t))
}

// prepareStackOn does so with databases of the test's own, too.
func prepareStackOn(t *testing.T, brokerURL, managementURL string, reportDB, notificationDB *pgxpool.Pool) *stack {
	t.Helper()
	c := &stack{t: t, brokerURL: brokerURL, managementURL: managementURL, reportDB: reportDB, notificationDB: notificationDB}
	key := event.NewKey("k1")
	c.keyring = must(event.ParseKeyring(key))
	common := map[string]string{
		"HTTP_ADDR": "127.0.0.1:0", "OPERATIONS_ADDR": "127.0.0.1:0", "LOG_LEVEL": "debug", "RECIPIENT_KEY": key,
		"RABBITMQ_URL": brokerURL, "RABBITMQ_MANAGEMENT_URL": managementURL,
		"RELAY_LEASE":  "3s", // a killed relay's shards are free after it
		"DRAIN_WINDOW": "2s",
		// Receivers of webhooks are on this machine.
		"WEBHOOK_ALLOW_HTTP": "true", "WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
		// People may ask for mails, which come at once; the worker sends them where a test has a mail server.
		"MAIL_FROM": "CityConnect <no-reply@city.test>", "MAIL_READ_FIRST": "0s",
		"PUBLIC_URL": "https://city.test", "MAIL_BOUNCE_DOMAIN": "bounces.city.test", "DIGEST_SPREAD": "0s",
		// People may ask for pushes; there is no such push service.
		"PUSH_VAPID_KEY": pushKey, "PUSH_CONTACT": "mailto:operations@city.example.org", "PUSH_ALLOW_HOSTS": pushHost,
		// Tests do in seconds what people do in hours.
		"REPORTS_PER_USER": "off", "VOTES_PER_USER": "off", "COMMENTS_PER_USER": "off",
		"AUTH_MODE": "dev", "AUTH_ISSUER": issuer, "AUTH_AUDIENCE": audience, "AUTH_JWT_SECRET": secret,
		// Where file puts its reports.
		"PAGE_MAP_CENTER": "107.6098,-6.9147,14",
	}
	common["OPEN311"] = "on"
	common["PHOTO_STORE"] = "file://" + t.TempDir()
	c.report = newProcess(t, "report-service", with(common, "DATABASE_URL", c.reportDB.Config().ConnString()))
	c.notification = newProcess(t, "notification-service", with(common, "DATABASE_URL", c.notificationDB.Config().ConnString()))
	c.worker = newProcess(t, "delivery-worker", with(common, "DATABASE_URL", c.notificationDB.Config().ConnString()))
	c.worker.log.parts = 1
	c.photo = newProcess(t, "photo-worker", with(common, "DATABASE_URL", c.reportDB.Config().ConnString()))
	c.photo.log.parts = 1
	c.gateway = httptest.NewServer(c.proxy())
	t.Cleanup(c.gateway.Close)
	c.Client = client.New(c.gateway.URL)
	t.Cleanup(c.CloseIdle)
	return c
}

// switchCommentsOn has residents comment on reports, before the stack starts.
func (c *stack) switchCommentsOn() {
	c.report.env["COMMENTS"], c.notification.env["COMMENTS"] = "on", "on"
}

// startStackWithComments returns a stack in which residents comment on reports.
func startStackWithComments(t *testing.T) *stack {
	t.Helper()
	c := prepareStack(t)
	c.switchCommentsOn()
	c.start()
	return c
}

// startStack returns a stack in which both services serve.
func startStack(t *testing.T) *stack {
	t.Helper()
	c := prepareStack(t)
	c.start()
	return c
}

// start starts both services and returns once they are ready.
func (c *stack) start() {
	c.t.Helper()
	c.notification.start()
	c.report.start()
	c.awaitReady()
}

func with(env map[string]string, name, value string) map[string]string {
	env = maps.Clone(env)
	env[name] = value
	return env
}

// proxy is the gateway: one origin for both services, as nginx makes it.
func (c *stack) proxy() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			target := c.notification
			for _, prefix := range []string{"/reports", "/areas", "/categories", "/guests", "/admin/outbox", "/admin/reports", "/dev/", "/map/points", "/map/assets", "/open-data/", "/open311/", "/photos/"} {
				// A client that asks for HTML gets a report's page, and not its data.
				if strings.HasPrefix(r.In.URL.Path, prefix) && !strings.Contains(r.In.Header.Get("Accept"), "text/html") {
					target = c.report
				}
			}
			u, err := url.Parse(target.url())
			if err != nil {
				u = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} // not started: nobody listens there
			}
			r.SetURL(u)
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}
}

// awaitReady returns when both services are ready for all they do.
func (c *stack) awaitReady() {
	c.t.Helper()
	for _, p := range []*process{c.report, c.notification} {
		service := client.New(p.url())
		defer service.CloseIdle()
		eventually.True(c.t, p.path+" ready", func() bool {
			var health struct{ Status string }
			return service.Do(c.t.Context(), http.MethodGet, "/readyz", nil, &health) == nil && health.Status == "up"
		})
	}
	c.awaitConsumers()
}

// signIn returns a client of a fresh user.
func (c *stack) signIn(name, role string) *client.Client {
	c.t.Helper()
	user, err := c.SignIn(c.t.Context(), name, role, "")
	if err != nil {
		c.t.Fatalf("sign in %s: %v", name, err)
	}
	return user
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
