package webhook_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
)

// The samples of docs/webhooks.md do what they say: they take a request that is
// signed with their secret, and refuse one that is not.

// samples returns the code blocks of the manual in a language.
func samples(t *testing.T, language string) []string {
	t.Helper()
	manual, err := os.ReadFile("../../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, block := range strings.Split(string(manual), "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(block, "```")
		blocks = append(blocks, code)
	}
	return blocks
}

// A signed is a request as an endpoint gets it.
type signed struct {
	id, timestamp, signature string
	body                     []byte
}

func sign(t *testing.T, secret string) signed {
	t.Helper()
	e, err := webhook.NewTest()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := signer.Sign(e.MessageID, now, e.Body)
	if err != nil {
		t.Fatal(err)
	}
	return signed{e.MessageID, strconv.FormatInt(now.Unix(), 10), signature, e.Body}
}

// send posts s and returns the status of the answer.
func (s signed) send(t *testing.T, address string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", s.id)
	req.Header.Set("webhook-timestamp", s.timestamp)
	req.Header.Set("webhook-signature", s.signature)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// receive runs a receiver that listens on address, and sends it what it has to
// take and what it has to refuse.
func receive(t *testing.T, cmd *exec.Cmd, secret, address string) {
	t.Helper()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // it is killed, so this is an error
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		select {
		case <-ended:
			t.Fatalf("the receiver ended: %s", output.String())
		case <-time.After(20 * time.Millisecond): // until it listens
		}
	}
	good := sign(t, secret)
	if status := good.send(t, "http://"+address+"/cityconnect"); status != http.StatusNoContent {
		t.Errorf("a signed request is answered with %d: %s", status, output.String())
	}
	altered := good
	altered.body = bytes.Replace(good.body, []byte("operator"), []byte("stranger"), 1)
	for what, s := range map[string]signed{"a body that was altered": altered, "another's secret": sign(t, webhook.NewSecret())} {
		if status := s.send(t, "http://"+address+"/cityconnect"); status != http.StatusUnauthorized {
			t.Errorf("%s is answered with %d, want 401", what, status)
		}
	}
}

// freePort returns an address of this machine that nothing listens on.
func freePort(t *testing.T) (host, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

func TestManualInGo(t *testing.T) {
	t.Parallel()
	code := samples(t, "go")
	if len(code) != 1 {
		t.Fatalf("the manual has %d samples in Go, want 1", len(code))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(code[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "receiver")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("the sample does not compile: %s", out)
	}
	host, port := freePort(t)
	secret := webhook.NewSecret()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program)
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret, "ADDR="+net.JoinHostPort(host, port))
	receive(t, cmd, secret, net.JoinHostPort(host, port))
}

func TestManualInNode(t *testing.T) {
	t.Parallel()
	code := samples(t, "js")
	if len(code) != 1 {
		t.Fatalf("the manual has %d samples in JavaScript, want 1", len(code))
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	installPackage(t)
	modules, err := filepath.Abs("testdata/verify/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "receiver.mjs"), []byte(code[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port := freePort(t)
	secret := webhook.NewSecret()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), node, "receiver.mjs")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "WEBHOOK_SECRET="+secret, "PORT="+port)
	receive(t, cmd, secret, net.JoinHostPort(host, port))
}

// Receivers that need nothing but the interpreter of their language.
func TestManualInterpreted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		language, interpreter, file string
		args                        func(address string) []string
	}{
		{"python", "python3", "receiver.py", func(string) []string { return []string{"receiver.py"} }},
		{"php", "php", "receiver.php", func(address string) []string { return []string{"-S", address, "receiver.php"} }},
	} {
		t.Run(tt.language, func(t *testing.T) {
			t.Parallel()
			code := samples(t, tt.language)
			if len(code) != 1 {
				t.Fatalf("the manual has %d samples, want 1", len(code))
			}
			interpreter, err := exec.LookPath(tt.interpreter)
			if err != nil {
				t.Skipf("%s is not installed", tt.interpreter)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(code[0]), 0o600); err != nil {
				t.Fatal(err)
			}
			host, port := freePort(t)
			secret := webhook.NewSecret()
			cmd := exec.CommandContext(context.WithoutCancel(t.Context()), interpreter, tt.args(net.JoinHostPort(host, port))...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "WEBHOOK_SECRET="+secret, "PORT="+port)
			receive(t, cmd, secret, net.JoinHostPort(host, port))
		})
	}
}

func TestManualInShell(t *testing.T) {
	t.Parallel()
	code := samples(t, "sh")
	if len(code) < 2 {
		t.Fatalf("the manual has %d samples for a shell, want first one that verifies and one that sends", len(code))
	}
	for _, program := range []string{"openssl", "curl", "od"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	secret := webhook.NewSecret()
	run := func(script, body string, environment ...string) (string, error) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "body"), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
		cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "WEBHOOK_SECRET="+secret), environment...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}

	s, other := sign(t, secret), sign(t, webhook.NewSecret())
	verify := func(signature, body string) (string, error) {
		return run(code[0], body, "webhook_id="+s.id, "webhook_timestamp="+s.timestamp, "webhook_signature="+signature)
	}
	rotating := other.signature + " " + s.signature
	for _, signature := range []string{s.signature, rotating} {
		if out, err := verify(signature, string(s.body)); err != nil || !strings.Contains(out, "verified") {
			t.Errorf("signatures %q: %v: %s", signature, err, out)
		}
	}
	if out, err := verify(rotating, string(s.body)+" "); err == nil {
		t.Errorf("a body that was altered is verified: %s", out)
	}
	if out, err := verify(other.signature, string(s.body)); err == nil {
		t.Errorf("another's signature is verified: %s", out)
	}

	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		got <- err
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	if out, err := run(code[1], "", "WEBHOOK_URL="+server.URL); err != nil {
		t.Fatalf("the sample that sends: %v: %s", err, out)
	}
	if err := <-got; err != nil {
		t.Errorf("what the sample sends is refused: %v", err)
	}
}
