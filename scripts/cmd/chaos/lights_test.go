//go:build linux

package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
)

// A light that is good while its server has not run for long is untrue, and so is one that
// is bad while everything has run for long; then a finding is false. Shortly after either
// change a light may be of before.
func TestLightsAreCompared(t *testing.T) {
	t.Parallel()
	state := "good"
	services := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/admin/workers" {
			fmt.Fprint(w, `{"findings": [{"what": "queue is gone"}]}`)
			return
		}
		fmt.Fprintf(w, `{"parts": [{"name": "database", "state": %q}, {"name": "jobs", "state": "good"}]}`, state)
	}))
	defer services.Close()
	l := newLights(&stack{dir: t.TempDir()}, client.New(services.URL))
	look := func(what string, untrue ...string) {
		t.Helper()
		clear(l.untrue)
		l.look(t.Context())
		if got := slices.Sorted(maps.Keys(l.untrue)); !slices.Equal(got, untrue) {
			t.Errorf("%s: untrue are %q, want %q", what, got, untrue)
		}
	}
	l.breaks()
	look("a server does not run for a moment") // neither has a pid file
	for server := range shows {
		l.down[server] = time.Now().Add(-time.Minute)
	}
	look("for long", "fault 1: notifications database is good", "fault 1: reports database is good")
	state = "bad"
	look("and is shown")

	for server := range shows {
		if err := os.WriteFile(filepath.Join(l.stack.dir, server+".pid"), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.mended()
	look("everything runs for a moment")
	l.whole = time.Now().Add(-time.Minute)
	if len(l.findings) != 0 {
		t.Errorf("false findings before: %v", l.findings)
	}
	look("for long", "fault 1: notifications database is bad", "fault 1: reports database is bad")
	if !l.findings["queue is gone"] {
		t.Error("a finding while everything runs is not counted")
	}
	state = "good"
	look("and is shown")
	if !l.clear.After(l.whole) {
		t.Error("the lights are not said to be good")
	}
}
