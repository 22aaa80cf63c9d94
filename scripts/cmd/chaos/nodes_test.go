//go:build linux

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
)

// Clusters have faults of their own, and single servers have others.
func TestKindsOfTheStack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		cluster        bool
		wants, refuses string
	}{
		{"one server", false, "postgres-backend-kill", "postgres-switchover"},
		{"a cluster", true, "postgres-switchover", "postgres-backend-kill"},
		{"one broker", false, "rabbitmq-kill", "rabbitmq-partition"},
		{"a cluster of brokers", true, "rabbitmq-partition", "rabbitmq-kill"},
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
	files := map[string]string{
		"postgres.ports":            "1,4,7,10\n2,5,8,11\n3,6,9,12\n",
		"rabbitmq.ports":            "1,4,0,7,13\n2,5,0,8,13\n3,6,0,9,13\n",
		"secrets/rabbitmq/password": "secret",
	}
	for _, server := range []string{"postgres", "rabbitmq"} {
		for i := range 3 {
			name := fmt.Sprintf("%s-%d", server, i+1)
			files[name+".pid"], files[name+"/data"] = "1\n1\n", ""
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A kind comes as often as its number says, and once without one.
func TestParseKinds(t *testing.T) {
	t.Parallel()
	known := []string{"cut", "kill"}
	got, err := parseKinds("kill*2,cut", known)
	if want := []string{"kill", "kill", "cut"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("kinds %v (error %v), want %v", got, err, want)
	}
	for text, want := range map[string]string{
		"kill*0": "at least 1", "kill*": "at least 1", "kill*two": "at least 1", "burn": "has cut, kill", "burn*2": "has cut, kill",
	} {
		if kinds, err := parseKinds(text, known); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v (error %v), want an error that says %q", text, kinds, err, want)
		}
	}
}

// The next fault waits until the one before is over: until every node follows the
// primary, and its acknowledgement counts.
func TestWholeCluster(t *testing.T) {
	t.Parallel()
	const leader = `{"role": "leader", "state": "running"}`
	const standby = `{"role": "quorum_standby", "state": "streaming"}`
	const follows = `{"state": "streaming", "sync_state": "quorum"}`
	for _, tt := range []struct {
		name        string
		primary     int // the status of /primary
		members     []string
		replication []string
		want        bool
	}{
		{"all follow", http.StatusOK, []string{standby, leader, standby}, []string{follows, follows}, true},
		{"nobody is the primary", http.StatusServiceUnavailable, []string{standby, leader, standby}, []string{follows, follows}, false},
		{"one is away", http.StatusOK, []string{leader, standby}, []string{follows}, false},
		{"one does not follow yet", http.StatusOK, []string{leader, standby, `{"role": "quorum_standby", "state": "running"}`}, []string{follows, follows}, false},
		{"one does not count yet", http.StatusOK, []string{leader, standby, `{"role": "replica", "state": "streaming"}`}, []string{follows, follows}, false},
		{"the primary was just restarted", http.StatusOK, []string{standby, leader, standby}, nil, false},
		{"one of them catches up", http.StatusOK, []string{standby, leader, standby}, []string{follows, `{"state": "catchup", "sync_state": "quorum"}`}, false},
		{"one of them counts for nothing", http.StatusOK, []string{standby, leader, standby}, []string{follows, `{"state": "streaming", "sync_state": "async"}`}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := func(primary int) string {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/primary":
						w.WriteHeader(primary)
					case "/patroni":
						fmt.Fprintf(w, `{"replication": [%s]}`, strings.Join(tt.replication, ", "))
					case "/cluster":
						fmt.Fprintf(w, `{"members": [%s]}`, strings.Join(tt.members, ", "))
					}
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

// It waits for the RabbitMQ nodes, too: until each sees all others, and every queue
// has all of its copies.
func TestClustered(t *testing.T) {
	t.Parallel()
	const copies = `{"name": "q", "type": "quorum", "members": ["a", "b"], "online": ["a", "b"]}`
	const alone = `{"name": "live", "type": "classic"}`
	both := `{"name": "a", "running": true}, {"name": "b", "running": true}`
	apart := `{"name": "a", "running": true}, {"name": "b", "running": true, "partitions": ["a"]}`
	for _, tt := range []struct {
		name   string
		nodes  [2]string // as each of them sees them
		queues string
		want   bool
		astray string // the one to be started again
	}{
		{"all is there", [2]string{both, both}, copies + "," + alone, true, ""},
		{"one does not answer", [2]string{both, ""}, copies, false, "b"},
		{"one is away", [2]string{`{"name": "a", "running": true}, {"name": "b"}`, both}, copies, false, ""},
		{"one does not see the other", [2]string{both, apart}, copies, false, "b"},
		{"one does not see the other, which does not answer", [2]string{"", apart}, copies, false, "a"},
		{"none answers", [2]string{"", ""}, copies, false, ""},
		{"one is not a member", [2]string{both, `{"name": "b", "running": true}`}, copies, false, ""},
		{"a copy is behind", [2]string{both, both}, `{"type": "quorum", "members": ["a", "b"], "online": ["a"]}`, false, ""},
		{"a copy is missing", [2]string{both, both}, `{"type": "quorum", "members": ["a"], "online": ["a"]}`, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := new(stack)
			for i, nodes := range tt.nodes {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case nodes == "":
						w.WriteHeader(http.StatusServiceUnavailable)
					case r.URL.Path == "/api/nodes":
						fmt.Fprintf(w, "[%s]", nodes)
					default:
						fmt.Fprintf(w, "[%s]", tt.queues)
					}
				}))
				t.Cleanup(server.Close)
				management, err := devserver.Management(server.URL, statusTimeout)
				if err != nil {
					t.Fatal(err)
				}
				s.brokers = append(s.brokers, broker{name: string(rune('a' + i)), management: management})
			}
			if got := s.clustered(); got != tt.want {
				t.Errorf("clustered: %t, want %t", got, tt.want)
			}
			if b := s.astray(); b.name != tt.astray {
				t.Errorf("astray: %q, want %q", b.name, tt.astray)
			}
		})
	}
}
