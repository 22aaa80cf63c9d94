package e2e

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// The suite that others point at a stream finds that ours keeps each promise of its
// manual: with three replicas, of which one is killed, one is ended and a fourth is full.
func TestStreamConformance(t *testing.T) {
	t.Parallel()
	s := newSubject(t)
	code, lines := s.check(s.streams(nil), "--notify", s.control+"/notify", "--break", s.control+"/break",
		"--drain", s.control+"/drain", "--overload", s.control+"/overload", "--patience", "60")
	if code != 0 || len(lines) < 12 {
		t.Errorf("the suite ended with %d after %d cases", code, len(lines))
	}
	for name, state := range lines {
		if state != passed {
			t.Errorf("%s: %s", name, state)
		}
	}
}

// It names what is wrong with a proxy that loses, swaps, repeats or strips, and nothing
// else, and skips what it cannot provoke.
func TestStreamConformanceNamesBreakages(t *testing.T) {
	t.Parallel()
	s := newSubject(t)
	cases := []string{"content-type", "reset", "reset-at-end", "ids", "fields", "order", "gap", "duplicates"}
	for _, tt := range []struct {
		name  string
		how   breakage
		wrong string
	}{
		{"loses an event", lose, "gap"},
		{"swaps two", swap(), "order"},
		{"repeats one", repeat, "duplicates"},
		{"strips ids", func(n int, block string, write func(string)) {
			if n > 0 {
				block = regexp.MustCompile(`(?m)^id:.*\n`).ReplaceAllString(block, "")
			}
			write(block)
		}, "ids"},
		{"strips a field", replace(`"report_id":"[^"]*",`, ""), "fields"},
		{"says that it was read", replace(`"read":false`, `"read":true`), "fields"},
		{"resets to another place", replace(`(?s)(event: reset\n.*\nid: v1\.\w+)\.\d+`, "${1}.7"), "reset-at-end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := []string{"--notify", s.control + "/notify", "--patience", "5", "--case", "drain"}
			for _, name := range cases {
				args = append(args, "--case", name)
			}
			code, lines := s.check(s.streams(tt.how), args...)
			if code != 1 || lines["drain"] != skipped {
				t.Errorf("the suite ended with %d, drain %s", code, lines["drain"])
			}
			for name, state := range lines {
				if (state == failed) != (name == tt.wrong) {
					t.Errorf("%s: %s", name, state)
				}
			}
		})
	}
}

// States of a case, by the suite.
const passed, failed, skipped = "passed", "failed", "skipped"

// A subject is a city whose streams the suite is pointed at.
type subject struct {
	*stack
	suite    string // its program
	reporter *client.Client
	control  string // the address at which the suite has things happen

	mu       sync.Mutex
	replicas []*process // those that are left; the first has the streams
}

func newSubject(t *testing.T) *subject {
	t.Helper()
	s := &subject{suite: packStreamClient(t), stack: prepareStack(t)}
	s.notification.env["STREAM_HEARTBEAT"] = "1s"
	s.start()
	s.replicas = []*process{s.notification}
	for len(s.replicas) < 3 {
		p := newProcess(t, "notification-service", s.notification.env)
		p.start()
		s.replicas = append(s.replicas, p)
	}
	s.reporter = s.signIn("Ana", "resident")
	voter, report := s.signIn("Ben", "resident"), file(t, s.reporter, "Dark crossing")
	votes := 0
	control := http.NewServeMux()
	control.HandleFunc("/notify", func(http.ResponseWriter, *http.Request) {
		votes++
		vote(t, voter, report, []string{"upvote", "downvote"}[votes%2])
	})
	control.HandleFunc("/break", func(http.ResponseWriter, *http.Request) { s.next().kill() })
	control.HandleFunc("/drain", func(http.ResponseWriter, *http.Request) { s.next().terminate() })
	control.HandleFunc("/overload", func(http.ResponseWriter, *http.Request) { s.fill() })
	server := httptest.NewServer(control)
	t.Cleanup(server.Close)
	s.control = server.URL
	return s
}

// next takes the streams from the first replica, which it returns.
func (s *subject) next() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.replicas[0]
	s.replicas = s.replicas[1:]
	return first
}

// fill leads the streams to a replica that has as many as it takes.
func (s *subject) fill() {
	env := maps.Clone(s.notification.env)
	env["STREAM_MAX"], env["STREAM_MAX_FEED"] = "2", "1"
	full := newProcess(s.t, "notification-service", env)
	full.start()
	for range 2 {
		stream, err := ssetest.Open(s.t.Context(), full.url()+"/notifications/stream", "", "Authorization", "Bearer "+s.reporter.Token())
		if err == nil {
			_, err = stream.Next()
		}
		if err != nil {
			s.t.Errorf("fill the replica: %v", err)
			return
		}
		s.t.Cleanup(stream.Close)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = []*process{full}
}

// streams returns the address of the streams, through a gateway that breaks them.
func (s *subject) streams(how breakage) string {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			s.mu.Lock()
			defer s.mu.Unlock()
			r.SetURL(must(url.Parse(s.replicas[0].url())))
		},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ModifyResponse: func(answer *http.Response) error {
			if how != nil && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
				answer.Body = mangled(answer.Body, how)
			}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	s.t.Cleanup(server.Close)
	return server.URL + "/notifications/stream"
}

// replace returns the breakage that replaces what a pattern matches.
func replace(pattern, by string) breakage {
	matched := regexp.MustCompile(pattern)
	return func(_ int, block string, write func(string)) { write(matched.ReplaceAllString(block, by)) }
}

// A breakage is what a gateway does with the nth notification of a connection, and with a
// reset, which is number 0.
type breakage func(n int, block string, write func(string))

// lose is the breakage that loses the second one.
func lose(n int, block string, write func(string)) {
	if n != 2 {
		write(block)
	}
}

// repeat is the breakage that sends the second one twice.
func repeat(n int, block string, write func(string)) {
	write(block)
	if n == 2 {
		write(block)
	}
}

// swap returns the breakage that holds the second one back until the third has come.
func swap() breakage {
	var second string
	return func(n int, block string, write func(string)) {
		if n == 2 {
			second = block
			return
		}
		write(block)
		if n == 3 {
			write(second)
		}
	}
}

// mangled is a stream whose notifications a breakage has got.
func mangled(stream io.ReadCloser, how breakage) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		lines, block, n := bufio.NewReader(stream), "", 0
		write := func(text string) { _, _ = io.WriteString(in, text) }
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				_ = in.CloseWithError(err)
				return
			}
			if block += line; line != "\n" {
				continue
			}
			switch {
			case strings.Contains(block, "event: notification\n"):
				n++
				how(n, block, write)
			case strings.Contains(block, "event: reset\n"):
				how(0, block, write)
			default:
				write(block)
			}
			block = ""
		}
	}()
	return struct {
		io.Reader
		io.Closer
	}{out, stream}
}

// packStreamClient makes the package of the stream's client, and returns the suite in it.
func packStreamClient(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("no npm here")
	}
	page := exec.CommandContext(t.Context(), filepath.Join(root(), "scripts", "page.sh"))
	if out, err := page.CombinedOutput(); err != nil {
		t.Fatalf("install the page's packages: %v\n%s", err, out)
	} else if strings.HasPrefix(string(out), "skipped") {
		t.Skipf("%s", out)
	}
	packing.Lock()
	defer packing.Unlock()
	folder := t.TempDir()
	pack := exec.CommandContext(t.Context(), npm, "pack", "--silent", "--pack-destination", folder)
	pack.Dir = filepath.Join(root(), "notification-service", "clients", "stream")
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("npm pack: %v\n%s", err, out)
	}
	archive := must(filepath.Glob(filepath.Join(folder, "*.tgz")))
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive[0], "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v\n%s", err, out)
	}
	listed := string(must(exec.CommandContext(t.Context(), "tar", "-tzf", archive[0]).Output()))
	for name := range strings.FieldsSeq(listed) {
		if !regexp.MustCompile(`^package/(dist/.*\.(js|d\.ts)|package\.json|README\.md|LICENSE)$`).MatchString(name) || strings.Contains(name, "test") {
			t.Errorf("the package has %s", name)
		}
	}
	return filepath.Join(folder, "package", "dist", "conformance", "main.js")
}

// packing is held while the package is built, in its folder.
var packing sync.Mutex

// check runs the suite, and returns its exit code and the state of each case.
func (s *subject) check(stream string, args ...string) (code int, states map[string]string) {
	s.t.Helper()
	suite := exec.CommandContext(s.t.Context(), "node", slices.Concat([]string{s.suite, stream, "--token", s.reporter.Token()}, args)...)
	out, err := suite.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		s.t.Fatal(err)
	}
	s.t.Logf("%s", out)
	states = make(map[string]string)
	for _, line := range regexp.MustCompile(`(?m)^(not )?ok \d+ - (\S+)( # SKIP)?`).FindAllStringSubmatch(string(out), -1) {
		switch {
		case line[1] != "":
			states[line[2]] = failed
		case line[3] != "":
			states[line[2]] = skipped
		default:
			states[line[2]] = passed
		}
	}
	return suite.ProcessState.ExitCode(), states
}

// The program in Node.js that docs/clients.md shows lists what was, and prints what comes.
func TestManualsNodeClient(t *testing.T) {
	t.Parallel()
	suite := packStreamClient(t)
	c := startStack(t)
	ana, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, ana, "Dark crossing")
	watch(t, ana).check([]sight{vote(t, ben, report, "upvote")})
	lines := startNodeClient(t, suite, c.gateway.URL, ana.Token())
	for _, want := range []string{"1 notifications", voted + " Dark crossing"} {
		if !lines.Scan() || !strings.HasSuffix(lines.Text(), want) {
			t.Fatalf("it prints %q, want %q", lines.Text(), want)
		}
		vote(t, ben, report, "downvote")
	}
}

// The package makes up for a gateway that loses, swaps or repeats: each notification is
// printed once and in order.
func TestStreamClientRepairs(t *testing.T) {
	t.Parallel()
	s := newSubject(t)
	for name, how := range map[string]breakage{"loses one": lose, "swaps two": swap(), "repeats one": repeat} {
		t.Run(name, func(t *testing.T) {
			lines := startNodeClient(t, s.suite, strings.TrimSuffix(s.streams(how), "/notifications/stream"), s.reporter.Token())
			if !lines.Scan() {
				t.Fatal("the client does not begin")
			}
			previous := 0
			for range 6 { // a loss shows with what follows it
				answer := must(http.Post(s.control+"/notify", "", nil))
				_ = answer.Body.Close()
			}
			for i := range 5 {
				lines.Scan()
				found := regexp.MustCompile(`^v1\.\w+\.(\d+) `).FindStringSubmatch(lines.Text())
				if found == nil {
					t.Fatalf("it prints %q", lines.Text())
				}
				number := must(strconv.Atoi(found[1]))
				if i > 0 && number != previous+1 {
					t.Errorf("it prints number %d after %d", number, previous)
				}
				previous = number
			}
		})
	}
}

// startNodeClient starts the program of docs/clients.md, and returns what it prints. It
// ends with the test.
func startNodeClient(t *testing.T, suite, city, token string) *bufio.Scanner {
	t.Helper()
	_, program, _ := strings.Cut(string(must(os.ReadFile(filepath.Join(root(), "docs", "clients.md")))), "```js\n")
	program, _, _ = strings.Cut(program, "```")
	folder := t.TempDir()
	installed := filepath.Join(folder, "node_modules", "@cityconnect", "stream")
	if err := os.CopyFS(installed, os.DirFS(filepath.Join(filepath.Dir(suite), "..", ".."))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "listen.mjs"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "listen.mjs")
	node.Dir, node.Env = folder, append(os.Environ(), "CITY="+city, "TOKEN="+token)
	out := must(node.StdoutPipe())
	node.Stderr = t.Output()
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Wait() })
	return bufio.NewScanner(out)
}
