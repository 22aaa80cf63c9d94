package config_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/config"
)

// A server on another machine that is reached in the clear is warned of, once a
// variable; none of the others is, and no password is shown.
func TestWarnWithoutTLS(t *testing.T) {
	t.Parallel()
	unprotected := []string{
		"postgres://u:geheim@db.example.org/x", // pgx's own "prefer" takes what it gets
		"postgres://u:geheim@db.example.org/x?sslmode=disable",
		"postgres://u:geheim@db.example.org/x?sslmode=allow",
		"postgres://u:geheim@db.example.org/x?sslmode=require", // anybody's certificate
		"postgresql://u:geheim@localhost,db.example.org/x?sslmode=disable",
		"host=10.0.0.7 user=u password=geheim sslmode=disable",
		"amqp://u:geheim@mq.example.org/",
		"amqp://u:geheim@rabbitmq:5672/",
		"amqp://u:geheim@127.0.0.1:5672,mq.example.org:5672/",
		"http://u:geheim@mq.example.org:15672",
		"http://id.example.org/certs",
		"http://[2001:db8::1]/certs",
	}
	fine := []string{
		"",
		"postgres://u:geheim@db.example.org/x?sslmode=verify-full",
		"postgres://u:geheim@db.example.org/x?sslmode=verify-ca",
		"postgres://u:geheim@127.0.0.1/x",
		"postgres://u:geheim@localhost/x?sslmode=disable",
		"postgres://u:geheim@/x?host=/run/postgresql",
		"host=/run/postgresql user=u",
		"amqps://u:geheim@mq.example.org/",
		"amqp://u:geheim@127.0.0.2/",
		"amqp://u:geheim@[::1]/",
		"amqp://u:geheim@127.0.0.1:5672,[::1]:5672/",
		"https://u:geheim@mq.example.org",
		"http://localhost:15672",
	}
	urls := make(map[string]string)
	for _, address := range slices.Concat(unprotected, fine) {
		urls["VARIABLE:"+address] = address
	}
	var log bytes.Buffer
	config.WarnWithoutTLS(zerolog.New(&log), urls)
	for variable, address := range urls {
		want := 0
		if slices.Contains(unprotected, address) {
			want = 1
		}
		if n := strings.Count(log.String(), `"variable":"`+variable+`"`); n != want {
			t.Errorf("%s: %d warnings, want %d", address, n, want)
		}
	}

	log.Reset()
	config.WarnWithoutTLS(zerolog.New(&log), map[string]string{"DATABASE_URL": unprotected[0]})
	if !strings.Contains(log.String(), `"host":"db.example.org"`) || strings.Contains(log.String(), "geheim") {
		t.Errorf("the warning is %s, want one with the host and without the password", log.String())
	}
}
