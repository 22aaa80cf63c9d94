// Package stack tests scripts/stack where it refuses what cannot work.
package stack

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// checkout returns a copy of the parts of a checkout that `scripts/stack up` reads
// before it builds anything. There is nothing in it to build.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, pattern := range []string{"stack", "test-servers.sh", "testing.sh", "version.sh", "stack.d/*.sh", "../go.work", "../.env.example", "../docker-compose.yml", "../deploy/compose.*.yml"} {
		files, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		for _, file := range files {
			target := filepath.Join(dir, "scripts", strings.TrimPrefix(file, "../"))
			if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(file) //nolint:gosec // of the checkout
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(target, content, 0o755); err != nil { //nolint:gosec // programs
				t.Fatal(err)
			}
		}
	}
	return dir
}

// program puts a program of a test's own first in the path.
func program(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}

// Everything that is known to fail is reported at once, with its variable and what
// must hold, before anything is built or started.
func TestUpRefusesWhatCannotWork(t *testing.T) { //nolint:funlen // most of it is the table
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, taken, _ := net.SplitHostPort(listener.Addr().String())
	// Those of the others are free for as long as nobody else starts a stack.
	free := []string{"GATEWAY_PORT=21080", "GATEWAY_TLS_PORT=21443", "REPORT_PORT=21002", "NOTIFICATION_PORT=21003", "MAILBOX_PORT=21050"}

	for _, tt := range []struct {
		name string
		env  []string
		file string // .env
		fake map[string]string
		want []string
		not  string
	}{
		{
			name: "everything at once", file: "GATEWY_PORT=19999\nFOO=bar\n#BAR=1\nREPLICAS=abc\nMAIL_DKIM_KEY=x\nAUTH_JWT_SECRET_FILE=\nCOMPOSE_FILE=a.yml\n",
			env: []string{"RABBITMQ_NODES=2", "POSTGRES_NODES=many"},
			want: []string{
				"GATEWY_PORT in .env is not a setting", "FOO in .env is not a setting", "REPLICAS must be a number from 1 to 99, not 'abc'",
				"RABBITMQ_NODES must be 1 or 3, not '2'", "POSTGRES_NODES must be 1 or 3, not 'many'",
			},
			not: "MAIL_DKIM",
		},
		{
			name: "ports", env: append([]string{"DELIVERY_OPERATIONS_PORT=" + taken, "PHOTO_OPERATIONS_PORT=21002"}, free...),
			want: []string{"port " + taken + " is taken by another program; choose one with DELIVERY_OPERATIONS_PORT=", "PHOTO_OPERATIONS_PORT must not be 21002: REPORT_PORT uses port 21002"},
			not:  "GATEWAY",
		},
		{
			name: "the broker's ports, with Compose",
			env:  append([]string{"STACK=compose", "RABBITMQ_PORT=" + taken, "RABBITMQ_MANAGEMENT_PORT=21002"}, free...),
			want: []string{"port " + taken + " is taken by another program; choose one with RABBITMQ_PORT=", "RABBITMQ_MANAGEMENT_PORT must not be 21002: REPORT_PORT uses port 21002"},
		},
		{
			name: "a port of containers that run already", fake: map[string]string{"docker": "[ \"$1 $2\" != 'compose ps' ] || echo 'gateway 127.0.0.1:" + taken + "->8080/tcp'"},
			env:  append(append([]string{"STACK=compose", "RABBITMQ_MANAGEMENT_PORT=21002"}, free...), "GATEWAY_PORT="+taken),
			want: []string{"RABBITMQ_MANAGEMENT_PORT must not be 21002: REPORT_PORT uses port 21002"},
			not:  "port " + taken,
		},
		{
			name: "a port of the second replica", env: append([]string{"REPLICAS=2", "PHOTO_OPERATIONS_PORT=21102"}, free...),
			want: []string{"PHOTO_OPERATIONS_PORT must not be 21102: REPORT_PORT uses port 21102"},
		},
		{name: "no port", env: append([]string{"MAILBOX_SMTP_PORT=smtp"}, free...), want: []string{"MAILBOX_SMTP_PORT must be a number from 1 to 65535, not 'smtp'"}},
		{name: "an old Go", fake: map[string]string{"go": "echo go1.19.8"}, want: []string{"Go must be 1.26.0 or newer, not 1.19.8"}},
		{name: "a release candidate", fake: map[string]string{"go": "echo go1.25rc1"}, want: []string{"Go must be 1.26.0 or newer, not 1.25rc1"}},
		{
			name: "a full disk", fake: map[string]string{"df": "printf 'Avail\\n 12\\n'"}, env: free,
			want: []string{"must be on a disk with 700 MiB of room, not 12 MiB; choose another folder with STACK_DIR=", "choose another folder with GOCACHE="},
		},
		{
			name: "a file that is not there", file: "CITY_LOGO=logo.svg\nCITY_WORDS=go.work\n", env: append([]string{"AUTH_JWT_SECRET_FILE=/does/not/exist", "COMPOSE_FILE=a.yml"}, free...),
			want: []string{"CITY_LOGO must name a file that can be read, not 'logo.svg'", "CITY_WORDS must name a folder that can be read, not 'go.work'", "AUTH_JWT_SECRET_FILE must name a file that can be read, not '/does/not/exist'"},
			not:  "COMPOSE_FILE",
		},
		{
			name: "a file that is not there, with Compose", file: "CITY_LOGO=/does/not/exist\nMAIL_DKIM_KEY_FILE=scripts\n", env: append([]string{"STACK=compose"}, free...),
			want: []string{"CITY_LOGO must name a file that can be read, not '/does/not/exist'", "MAIL_DKIM_KEY_FILE must name a file that can be read, not 'scripts'"},
			not:  "PAGE_MAP_FILE",
		},
		{
			name: "a logo that is none", file: "CITY_LOGO=docker-compose.yml\n", env: append([]string{"STACK=compose"}, free...),
			want: []string{"CITY_LOGO must name an SVG or PNG of at most 64 KiB, not 'docker-compose.yml'"},
		},
		{
			name: "a secret that the service cannot read", file: "MAIL_URL_FILE=.env\n", env: append([]string{"STACK=compose"}, free...),
			want: []string{"MAIL_URL_FILE must name a file that user 65532 can read, not '.env'"},
		},
		{name: "another kind of stack", env: []string{"STACK=kubernetes"}, want: []string{"STACK must be native or compose, not 'kubernetes'"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, programs := checkout(t), t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			for name, text := range tt.fake {
				program(t, programs, name, text)
			}
			cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(dir, "scripts", "stack"), "up")
			cmd.Env = append([]string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "STACK=native"}, tt.env...)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("ended with %d (%v), want 1", code, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("does not say %q", want)
				}
			}
			if tt.not != "" && strings.Contains(text, tt.not) {
				t.Errorf("complains of %s", tt.not)
			}
			for _, started := range []string{"building", "installing", "starting"} {
				if strings.Contains(text, started) {
					t.Errorf("begins with %s", started)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
			if _, err := os.Stat(filepath.Join(dir, ".stack", "bin")); err == nil {
				t.Error("something was built")
			}
		})
	}
}

// Every variable of a port that the stack remembers is looked at before the start.
func TestEveryPortIsChecked(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../.env.example")
	if err != nil {
		t.Fatal(err)
	}
	check, err := os.ReadFile("check.sh")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(example)) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), "=")
		if _, err := strconv.Atoi(value); !ok || err != nil || !strings.HasSuffix(name, "_PORT") {
			continue
		}
		if name == "PROMETHEUS_PORT" || name == "GRAFANA_PORT" { // of a profile that `up` leaves out
			continue
		}
		found++
		if !strings.Contains(string(check), name+" ") {
			t.Errorf("check.sh does not look at %s", name)
		}
	}
	if found < 11 {
		t.Errorf("found %d ports in .env.example, want 11 or more", found)
	}
}
