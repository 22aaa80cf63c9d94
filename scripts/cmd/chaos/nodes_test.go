//go:build linux

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A PostgreSQL cluster has faults of its own, and a single server has others.
func TestKindsOfTheStack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		cluster        bool
		wants, refuses string
	}{
		{"one server", false, "postgres-backend-kill", "postgres-switchover"},
		{"a cluster", true, "postgres-switchover", "postgres-backend-kill"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			if tt.cluster {
				makeNodes(t, filepath.Join(state, "native"))
			}
			if _, err := parse([]string{"-state", state, "-kinds", tt.wants}); err != nil {
				t.Error(err)
			}
			if _, err := parse([]string{"-state", state, "-kinds", tt.refuses}); err == nil || !strings.Contains(err.Error(), tt.wants) {
				t.Errorf("-kinds %s: %v, want it to be refused with what there is", tt.refuses, err)
			}
		})
	}
}

// makeNodes makes what the native stack has of three running nodes.
func makeNodes(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ports := ""
	for i := range 3 {
		name := fmt.Sprintf("postgres-%d", i+1)
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".pid"), []byte("1\n1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		ports += fmt.Sprintf("%d,%d,%d,%d\n", i+1, i+4, i+7, i+10)
	}
	if err := os.WriteFile(filepath.Join(dir, "postgres.ports"), []byte(ports), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The next fault waits until the one before is over: until every node follows the
// primary, and its acknowledgement counts.
func TestWholeCluster(t *testing.T) {
	t.Parallel()
	const leader = `{"role": "leader", "state": "running"}`
	const standby = `{"role": "quorum_standby", "state": "streaming"}`
	for _, tt := range []struct {
		name    string
		primary int // the status of /primary
		members []string
		want    bool
	}{
		{"all follow", http.StatusOK, []string{standby, leader, standby}, true},
		{"nobody is the primary", http.StatusServiceUnavailable, []string{standby, leader, standby}, false},
		{"one is away", http.StatusOK, []string{leader, standby}, false},
		{"one does not follow yet", http.StatusOK, []string{leader, standby, `{"role": "quorum_standby", "state": "running"}`}, false},
		{"one does not count yet", http.StatusOK, []string{leader, standby, `{"role": "replica", "state": "streaming"}`}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := func(primary int) string {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/primary" {
						w.WriteHeader(primary)
						return
					}
					fmt.Fprintf(w, `{"members": [%s]}`, strings.Join(tt.members, ", "))
				}))
				t.Cleanup(server.Close)
				return server.URL
			}
			s := &stack{nodes: []node{
				{name: "postgres-1", rest: answer(http.StatusServiceUnavailable)},
				{name: "postgres-2", rest: answer(tt.primary)},
				{name: "postgres-3", rest: "http://127.0.0.1:1"}, // nobody listens there
			}}
			if got := s.whole(t.Context()); got != tt.want {
				t.Errorf("whole: %t, want %t", got, tt.want)
			}
		})
	}
}
