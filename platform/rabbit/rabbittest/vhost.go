// Package rabbittest gives each test a place of its own on a real RabbitMQ: a
// virtual host on the shared test broker, or, for a test that breaks the
// broker, a broker process of its own.
package rabbittest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// setupTimeout is long because a loaded machine is slow; it only ever ends a
// test that could not have worked.
const setupTimeout = 2 * time.Minute

// Vhost returns the URL of a fresh virtual host on the shared test broker. It
// is deleted, with all in it, when t ends.
func Vhost(t testing.TB) string {
	t.Helper()
	base := mustEnv(t, "TEST_RABBITMQ_URL")
	management := mustEnv(t, "TEST_RABBITMQ_MANAGEMENT_URL")
	made := newVhost(t, base, management)
	t.Cleanup(func() {
		u, _ := url.Parse(made)
		Manage(t, management, http.MethodDelete, "/api/vhosts"+u.Path, nil)
	})
	return made
}

// newVhost makes a virtual host and returns its URL.
func newVhost(t testing.TB, base, management string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal("rabbittest: the broker's address is not a URL")
	}
	name := "test-" + strings.ReplaceAll(uuid.NewString(), "-", "")
	Manage(t, management, http.MethodPut, "/api/vhosts/"+name, nil)
	u.Path = "/" + name
	return u.String()
}

// Manage calls the management API that stands at management, fails t unless it
// answers 2xx, and returns the body. A body that is not nil is sent as JSON.
func Manage(t testing.TB, management, method, path string, body any) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), setupTimeout)
	defer cancel()
	answer, err := manage(ctx, management, method, path, body)
	if err != nil {
		t.Fatalf("rabbittest: %s %s: %v", method, path, err)
	}
	return answer
}

func manage(ctx context.Context, management, method, path string, body any) ([]byte, error) {
	var payload io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, management+path, payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", res.Status, answer)
	}
	return answer, err
}

func mustEnv(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run `make test`, or `eval \"$(scripts/stack test-up)\"` before go test", name)
	}
	return value
}
