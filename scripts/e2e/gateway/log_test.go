package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// Neither log holds a query string, since people search for names, nor an
// address, a cursor of a stream, the id that a device gave an upload, or a size by
// which readers could be told apart: not for requests that succeed, and not for those that fail.
func TestLogsSayNothingOfPeople(t *testing.T) {
	t.Parallel()
	ok := serve(t, answer("reports"))
	long := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", strings.Repeat("canary", 8000)) // more than nginx takes
	})
	g := start(t, []string{away, ok}, []string{away})
	h := start(t, []string{long}, []string{away})
	for range 4 { // at either replica first
		g.do(t, "GET", g.URL+"/reports?q=canary", nil)
		g.do(t, "POST", g.URL+"/reports?q=canary", strings.NewReader("canary"))
	}
	g.do(t, "PUT", g.URL+"/reports/1/photos/canary?alt=canary", strings.NewReader("canary"))
	g.do(t, "PUT", g.URL+"//reports/1//photos/canary", strings.NewReader("canary"))
	g.do(t, "GET", g.URL+"/notifications?cursor=canary", nil)
	g.do(t, "GET", g.URL+"/notifications/stream?last_event_id=v1.canary", nil, "Last-Event-ID", "v1.canary")
	g.do(t, "POST", g.URL+"/reports?q=canary", strings.NewReader(strings.Repeat(" ", 1<<20+1)))
	g.send(t, "GET /reports?q=canary%zz HTTP/1.1\r\nHost: canary\r\nX-Z: "+strings.Repeat("canary", 2000)+"\r\n\r\n")
	g.send(t, "GET /reports/%zz?q=canary HTTP/1.1\r\nHost: canary\r\n\r\n")
	h.do(t, "GET", h.URL+"/reports?q=canary", nil)

	for _, g := range []gateway{g, h} {
		g.Client.CloseIdleConnections()
		g.Stop() // every line is written then
		for _, file := range []string{g.AccessLog, g.ErrorLog} {
			if log := read(t, file); strings.Contains(log, "canary") || strings.Contains(log, "client:") || strings.Contains(log, `"bytes"`) {
				t.Errorf("%s:\n%s", file, log)
			}
		}
	}
	// The path is logged, also where the gateway answered by itself, but for one that
	// it cannot read.
	log := read(t, g.AccessLog)
	for path, want := range map[string]int{"/reports": 10, "/reports/1/photos/-": 1, "/notifications": 1, "/notifications/stream": 1, "": 1} {
		if n := strings.Count(log, `"path":"`+path+`"`); n != want {
			t.Errorf("access log with %d lines of %s, want %d:\n%s", n, path, want, log)
		}
	}
}

// The access log says what the error log may not: which replica failed, and whether it
// could be reached.
func TestAccessLogTellsWhichReplicaFailed(t *testing.T) {
	t.Parallel()
	ok := serve(t, answer("reports"))
	g := start(t, []string{away, ok}, []string{away})
	g.do(t, "GET", g.URL+"/reports", nil)
	g.do(t, "GET", g.URL+"/reports", nil)
	g.Client.CloseIdleConnections()
	g.Stop()
	type line struct {
		Time     string `json:"time"`
		Upstream string `json:"upstream"`
		Status   string `json:"upstream_status"`
		Connect  string `json:"upstream_connect_seconds"`
	}
	want, connected := away+", "+ok, regexp.MustCompile(`^-, \d+\.`)
	for text := range strings.Lines(read(t, g.AccessLog)) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000Z07:00", l.Time); err != nil {
			t.Errorf("%q is not a time with milliseconds: %v", l.Time, err)
		}
		if l.Upstream == want && l.Status == "502, 200" && connected.MatchString(l.Connect) {
			return
		}
	}
	t.Errorf("no line says that %s failed:\n%s", away, read(t, g.AccessLog))
}

// The error log keeps what concerns nginx itself.
func TestErrorLogTellsOfDeadWorkers(t *testing.T) {
	t.Parallel()
	g := start(t, []string{away}, []string{away})
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", g.PID, g.PID))
	if err != nil {
		t.Skip("this system does not list a process's children")
	}
	first, _, _ := strings.Cut(string(children), " ")
	worker, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("nginx has the children %q", children)
	}
	if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
		t.Fatalf("kill worker %d: %v", worker, err)
	}
	want := fmt.Sprintf("worker process %d exited on signal 9", worker)
	eventually.True(t, "the error log says "+want, func() bool { return strings.Contains(read(t, g.ErrorLog), want) })
}
