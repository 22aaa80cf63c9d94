package webhook_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// A nodeRequest is what testdata/verify/verify.mjs reads.
type nodeRequest struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// verifiedByNode has the npm package of Standard Webhooks verify the requests of
// the events under each secret.
func (r *receiver) verifiedByNode(ids map[string][]string) {
	r.t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		r.t.Log("Node.js is not installed: its library was not asked")
		return
	}
	installPackage(r.t)
	byID := make(map[string]request)
	for _, got := range r.requests() {
		byID[got.header.Get("Webhook-Id")] = got
	}
	var requests []nodeRequest
	for secret, of := range ids {
		for _, id := range of {
			got, headers := byID[id], make(map[string]string)
			for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
				headers[name] = got.header.Get(name)
			}
			requests = append(requests, nodeRequest{secret, headers, string(got.body)})
		}
	}
	input, err := json.Marshal(requests)
	if err != nil {
		r.t.Fatal(err)
	}
	verify := exec.CommandContext(r.t.Context(), node, "verify.mjs")
	verify.Dir, verify.Stdin = "testdata/verify", strings.NewReader(string(input))
	output, err := verify.CombinedOutput()
	if err != nil {
		r.t.Errorf("Node.js verifies not all: %v\n%s", err, output)
	}
	r.t.Logf("Node.js: %s", output)
}

// installPackage installs the package of Standard Webhooks below testdata/verify.
func installPackage(t *testing.T) {
	t.Helper()
	if err := installOnce(); err != nil {
		t.Fatalf("install the package of Standard Webhooks: %v", err)
	}
}

var installOnce = sync.OnceValue(func() error {
	npm := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = "testdata/verify"
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
})
