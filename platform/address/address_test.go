package address_test

import (
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/address"
)

func TestFault(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"", "host=10.0.0.7 user=u password=p@ss", "file:///srv/a@b", "unix:///run/clamav/clamd.ctl", "tcp://clamd:3310",
		"postgres://u:p@db.example.org:5432/x?sslmode=verify-full", "postgres://u:p%40ss%23%2F%3F%25@db/x", "postgres:///x?host=/run/postgresql",
		"postgres://u:p@a:1,b:2/x", "postgres://u@%2Frun%2Fpostgresql/x", "amqp://u:p@a:5672,b:5672/v", "amqp://u:p!$&'()*+,;=:-._~@a/",
		"http://[::1]:15672", "http://u:p@[fe80::1%25eth0]:1/", "https://id.example.org/realms/city/certs", "https://kötä.example.org/",
		"http://127.0.0.1:15672", "smtp+insecure://localhost:1025", "https://nominatim.example.org/search?key=a%40b", "postgres://u:@db/x",
	} {
		if fault := address.Fault(good); fault != "" {
			t.Errorf("%q: must be %s", good, fault)
		}
	}
	for _, password := range []string{
		"Geheim@Teil#2", "Geheim@Teil", "Geheim#2", "Geheim/2", "Geheim?2", "Geheim%2", "Geheim%zz", "Geheim%", "12#34", "12/34", "12?34",
		"@Geheim", "Geheim@", "Geheim 2", "Geheim\\2", "Geheim[2]", `Geheim"2`, "Geheim<2>", "Geheim^2", "Geheim`2", "Geheim{2}", "Gehéim", "Geheim|2",
	} {
		for _, rest := range []string{"db.example.org:5432/x", "db.example.org", "a:5672,b:5672/v", "[::1]:15672?x=y"} {
			for _, user := range []string{"u:", ""} {
				bad := "postgres://" + user + password + "@" + rest
				fault := address.Fault(bad)
				if !strings.Contains(fault, "must have @ in the password encoded as %40") || strings.Contains(fault, "Geheim") {
					t.Errorf("%q: must be %q, without the password", bad, fault)
				}
			}
		}
	}
	for _, bad := range []string{"amqp://<host>:5672/", "http://a b/", "http://a:b/", "postgres://u:p@a:1,b:c/x", "http://[::1/", "http://u:p/x"} {
		if address.Fault(bad) == "" {
			t.Errorf("%q is taken", bad)
		}
	}
}
