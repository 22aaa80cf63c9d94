package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// With servers whose certificates are of a private authority, all that the
// services send goes over TLS, and nothing is sent to a server whose certificate
// is of an authority that was not named, or of another host.
func TestTLSToTheServers(t *testing.T) {
	t.Parallel()
	city, stranger := newAuthority(t), newAuthority(t)
	postgres, broker := pgtest.StartServerTLS(t, city.issue()), rabbittest.StartServerTLS(t, city.issue())
	reports, notifications := postgres.Create(migrations.Report), postgres.Create(migrations.Notification)
	overTLS := func(database, host string, ca *authority) string {
		return strings.NewReplacer("127.0.0.1", host, "sslmode=disable", "sslmode=verify-full&sslrootcert="+ca.file).Replace(database)
	}
	amqps := func(host string, ca *authority) string {
		return fmt.Sprintf("amqps://%s:guest@%s:%d/?cacertfile=%s", devserver.Superuser, host, broker.TLSPort(), ca.file)
	}

	for what, tt := range map[string]struct {
		host string
		ca   *authority
		as   func(error) bool
	}{
		"unknown authority": {"127.0.0.1", stranger, is[x509.UnknownAuthorityError]},
		"another host":      {"localhost", city, is[x509.HostnameError]},
	} {
		pool, err := pgpool.Open(t.Context(), overTLS(reports, tt.host, tt.ca), "test")
		if err != nil {
			t.Fatalf("open pool: %v", err)
		}
		if err := pool.Ping(t.Context()); !tt.as(err) {
			t.Errorf("%s: PostgreSQL: error %v", what, err)
		}
		pool.Close()
		if err := migrations.Up(t.Context(), overTLS(reports, tt.host, tt.ca), migrations.Report); !tt.as(err) {
			t.Errorf("%s: migrations: error %v", what, err)
		}
		conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: amqps(tt.host, tt.ca)})
		if !tt.as(err) {
			t.Errorf("%s: RabbitMQ: error %v", what, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if err := migrations.Up(t.Context(), overTLS(reports, "127.0.0.1", city), migrations.Report); err != nil {
		t.Errorf("migrate over TLS: %v", err)
	}

	c := prepareStackAt(t, broker.URL(), broker.ManagementURL())
	c.reportDB, c.notificationDB = connect(t, reports), connect(t, notifications)
	for p, database := range map[*process]string{c.report: reports, c.notification: notifications, c.photo: reports, c.worker: notifications} {
		p.env["DATABASE_URL"] = overTLS(database, "127.0.0.1", city)
		p.env["RABBITMQ_URL"] = amqps("127.0.0.1", city)
		p.env["RABBITMQ_MANAGEMENT_URL"] = ""
	}
	c.notification.env["RABBITMQ_MANAGEMENT_URL"] = fmt.Sprintf("https://%s:guest@127.0.0.1:%d", devserver.Superuser, broker.TLSManagementPort())
	c.notification.env["SSL_CERT_FILE"] = city.file
	c.doEverything(must(event.NewTopology("")))

	var secured, clear int
	err := c.reportDB.QueryRow(t.Context(), `
		select count(*) filter (where ssl), count(*) filter (where not ssl)
		from pg_stat_ssl join pg_stat_activity using (pid) where application_name in ('report-service', 'photo-worker', 'notification-service', 'delivery-worker')`).Scan(&secured, &clear)
	if err != nil || secured == 0 || clear > 0 {
		t.Errorf("PostgreSQL has %d connections over TLS and %d in the clear (error: %v)", secured, clear, err)
	}
	var connections []rabbithole.ConnectionInfo
	eventually.True(t, "the broker shows its connections", func() bool {
		connections, err = rabbittest.Management(t, broker.ManagementURL()).ListConnections()
		return err == nil && len(connections) > 0
	})
	for _, conn := range connections {
		if !conn.UsesTLS {
			t.Errorf("connection %s to the broker is in the clear", conn.Name)
		}
	}
}

// is tells whether an error of type E is in the chain of err.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// connect opens a pool that ends with the test.
func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// An authority issues certificates.
type authority struct {
	t           *testing.T
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	file        string // its certificate, as PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), file: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of " + t.Name()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key))
	a.certificate = must(x509.ParseCertificate(der))
	if err := os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatalf("write the authority's certificate: %v", err)
	}
	return a
}

// issue makes a server's certificate for 127.0.0.1 and for no other host.
func (a *authority) issue() devserver.TLS {
	a.t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))
	return devserver.TLS{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))}),
	}
}
