package stack

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fakeServers stands in for servers: a line in a file for each start and stop.
const fakeServers = `
check_go() { :; }
report_faults() { :; }
missing_for_tests() { :; }
need_packages() { :; }
servers_build() { :; }
test_running() { [[ -s $test_dir/env ]]; }
test_start() {
  echo start >>"$root/servers.log"
  mkdir -p "$test_dir"
  sleep 0.3 # so that others come in between
  echo 'export SERVERS=here' >"$test_dir/env"
}
test_down() {
  echo stop >>"$root/servers.log"
  sleep 0.3
  rm -rf "$test_dir"
}
`

// A run uses the servers until its standard input ends.
type run struct {
	*exec.Cmd
	input io.Closer
	out   *bufio.Reader
}

func newRun(t *testing.T, dir string) *run {
	t.Helper()
	const script = `set -euo pipefail
source scripts/test-servers.sh
trap leave_servers EXIT
take_servers
sleep 600 & # has what this has, and may outlive it
echo "$SERVERS"
read -r _ || true
kill $!`
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, environment(), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &run{cmd, in, bufio.NewReader(out)}
	t.Cleanup(r.kill)
	return r
}

// environment is that of a native stack with nothing set.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "STACK=native"}
}

// serving returns the run once it has the servers.
func (r *run) serving(t *testing.T) *run {
	t.Helper()
	if line, err := r.out.ReadString('\n'); err != nil || line != "here\n" {
		t.Fatalf("the run says %q (error %v)", line, err)
	}
	return r
}

// kill ends the run and all that it has started.
func (r *run) kill() {
	_ = syscall.Kill(-r.Process.Pid, syscall.SIGKILL)
	_, _ = r.Process.Wait()
}

// end lets the run end by itself.
func (r *run) end() {
	_ = r.input.Close()
	_, _ = r.Process.Wait()
}

// terminate ends the run alone by a signal.
func (r *run) terminate() {
	_ = r.Process.Signal(syscall.SIGTERM)
	_, _ = r.Process.Wait()
}

// The servers of the tests are started once, however many runs begin together, and
// stopped by the last of them that ends, also by a signal; those that somebody asked
// for by hand stay.
func TestLastRunStopsTheServers(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock here")
	}
	dir := checkout(t)
	add := func(name, text string) {
		f, err := os.OpenFile(filepath.Join(dir, "scripts", name), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	add("stack.d/check.sh", fakeServers) // which is sourced last
	seen := func(want string) {
		t.Helper()
		log, _ := os.ReadFile(filepath.Join(dir, "servers.log")) //nolint:gosec // the test's own
		if got := strings.Join(strings.Fields(string(log)), " "); got != want {
			t.Fatalf("the servers' log is %q, want %q", got, want)
		}
	}
	byHand := func(command string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "scripts/stack", command)
		cmd.Dir, cmd.Env = dir, environment()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}

	a, b := newRun(t, dir), newRun(t, dir)
	a.serving(t)
	b.serving(t)
	seen("start")
	a.terminate()
	seen("start")
	b.end()
	seen("start stop")

	// Killed at once, a run stops nothing; the next one that ends does.
	newRun(t, dir).serving(t).kill()
	newRun(t, dir).serving(t).terminate()
	seen("start stop start stop")

	// By hand before, or while a run uses them.
	byHand("test-up")
	newRun(t, dir).serving(t).end()
	seen("start stop start stop start")
	byHand("test-down")
	c := newRun(t, dir).serving(t)
	byHand("test-up")
	c.end()
	seen("start stop start stop start stop start")
}

// A broker that refuses each new queue is started again after three refusals, and one that
// is slow, away or refuses once is not.
func TestBrokerThatRefusesIsMended(t *testing.T) {
	t.Parallel()
	const watch = `set -euo pipefail
source <(sed -n '/^mend_broker()/,/^}/p' scripts/testing.sh)
rounds=0
sleep() { ((++rounds <= $(wc -w <<<"$ANSWERS"))); }
curl() { [[ " $* " != *' PUT '* ]] || { set -- $ANSWERS; printf '%s' "${!rounds}"; }; }
TEST_RABBITMQ_MANAGEMENT_URL=none
mend_broker
`
	for answers, want := range map[string]int{"201 201 201 201": 0, "400 500 201 400 400": 0, "000 000 000 000": 0, "400 500 400 201": 1, "400 400 400 400 400 400": 2} {
		dir := t.TempDir()
		testing, err := os.ReadFile("../testing.sh")
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, "scripts"), 0o750)
		}
		if err == nil {
			err = errors.Join(os.WriteFile(filepath.Join(dir, "scripts/testing.sh"), testing, 0o600),
				os.WriteFile(filepath.Join(dir, "scripts/stack"), []byte("#!/bin/sh\necho \"$@\" >>mended\n"), 0o755)) //nolint:gosec // a program
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", watch)
		cmd.Dir, cmd.Env = dir, append(environment(), "ANSWERS="+answers)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", answers, err, out)
		}
		mended, _ := os.ReadFile(filepath.Join(dir, "mended")) // absent without
		if got := strings.Count(string(mended), "test-mend\n"); got != want {
			t.Errorf("answered %q: mended %d times, want %d", answers, got, want)
		}
	}
}
