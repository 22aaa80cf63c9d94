package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The stack refuses what would lose acknowledged writes, or what it cannot start,
// before it builds or starts anything.
func TestStackRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		environment []string
		args        []string
		wants       []string
		before      string // what the last up said of its nodes
	}{
		{"Patroni 3", []string{"STACK=native", "POSTGRES_NODES=3"}, []string{"up"},
			[]string{"patroni is refused: Patroni 3.0.2 is below 4", "lost acknowledged writes", "POSTGRES_NODES=3 needs Patroni 4 or newer"}, ""},
		{"two nodes", []string{"STACK=native", "POSTGRES_NODES=2"}, []string{"up"}, []string{"POSTGRES_NODES must be 1 or 3, not '2'"}, ""},
		{"a cluster with Compose", []string{"STACK=compose", "POSTGRES_NODES=3"}, []string{"up"}, []string{"POSTGRES_NODES=3 needs the native stack"}, ""},
		{"a fourth node", []string{"STACK=native", "POSTGRES_NODES=3"}, []string{"stop", "postgres-4"}, []string{"postgres-NUMBER", "not 'postgres-4'"}, ""},
		{"start of what there is one of", []string{"STACK=native"}, []string{"start", "mailbox"}, []string{"rabbitmq-NUMBER or postgres-NUMBER, not 'mailbox'"}, ""},
		{"start of a replica of a stack that is down", []string{"STACK=native"}, []string{"start", "report-1"}, []string{"this stack is down; scripts/stack up starts it"}, ""},
		{"start of a node that there is not", []string{"STACK=native"}, []string{"start", "rabbitmq-2"}, []string{"this stack has one RabbitMQ"}, ""},
		{"one node of three with Compose", []string{"STACK=compose", "RABBITMQ_NODES=1"}, []string{"up"},
			[]string{"RABBITMQ_NODES=1: the data is on three nodes"}, "RABBITMQ_NODES=3"},
		{"as many nodes as before", []string{"STACK=compose"}, []string{"up"}, []string{"POSTGRES_NODES=3 needs the native stack"}, "POSTGRES_NODES=3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			programs, state := t.TempDir(), t.TempDir()
			for name, script := range map[string]string{
				"patroni": "#!/bin/sh\necho patroni 3.0.2\n",
				"apt-get": "#!/bin/sh\nexit 1\n", // Debian's servers are not reached
				// A value that is not refused ends at the build.
				"go": "#!/bin/sh\ncase $* in *GOVERSION*) echo go1.99 ;; *GOCACHE*) echo /tmp ;; *) exit 1 ;; esac\n",
			} {
				if err := os.WriteFile(filepath.Join(programs, name), []byte(script), 0o700); err != nil { //nolint:gosec // they are run
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(state, "nodes"), []byte(tt.before+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "stack"), tt.args...)
			cmd.Env = append(os.Environ(), append(tt.environment, "STACK_DIR="+state, "PATH="+programs+":"+os.Getenv("PATH"),
				// A stack that runs has the usual ports.
				"GATEWAY_PORT=22080", "GATEWAY_TLS_PORT=22443", "REPORT_PORT=22002", "NOTIFICATION_PORT=22003")...)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("%v: no error", tt.args)
			}
			for _, want := range tt.wants {
				if !strings.Contains(string(out), want) {
					t.Errorf("%v says %q, want %q in it", tt.args, out, want)
				}
			}
			if _, err := os.Stat(filepath.Join(state, "native")); err == nil {
				t.Errorf("%v: something was begun", tt.args)
			}
		})
	}
}

// A node that is not in the list of ports is refused.
func TestNumberOfANode(t *testing.T) {
	t.Parallel()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, number := range []string{"0", "3", "-1"} {
		err := run(t.Context(), []string{"ready", "patroni", "-password", password, "-cluster", "1,2,3,4 5,6,7,8", "-number", number}, nil)
		if err == nil || !strings.Contains(err.Error(), "-number "+number+": must be one of the 2 nodes") {
			t.Errorf("-number %s: %v, want it to be refused", number, err)
		}
	}
}
