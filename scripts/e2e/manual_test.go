package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// notRun has the beginnings of the blocks of shell that have curl and are not run
// here, and why.
var notRun = map[string]string{
	"docs/mail.md: #!/bin/sh":           "a script of the city's mail server, for an address of production; TestBouncesOfExim posts what it posts",
	"docs/performance.md: curl -so cpu": "takes a profile for 20 seconds and opens a browser",
	"docs/keycloak.md: TOKEN=$(curl":    "asks a Keycloak, which no test has",
	"docs/rabbitmq.md: api=https":       "asks a broker with TLS for users; TestLeastPrivilege runs the script that does the same",
	"docs/production.md: curl -sSL":     "fetches Go",
	"docs/production.md: cp deploy/":    "starts units of systemd; TestSystemdUnit reads them",
}

// answers are those that are not 2xx, by method and path.
var answers = map[string]string{
	// The replay may have come to its end before it is paused.
	"POST /admin/dlq/replays/…/pause": "409",
}

// shown is what a reader of a manual sees, among other things.
var shown = map[string][]string{
	"docs/back-office.md": {`"reports":[]`, `"name":"Works"`},
	"docs/city.md":        {`tag: "1"`, `tag: "2"`, `"name":"Bau gas atau kebakaran"`},
	"README.md":           {"event: notification", `"report.vote.received"`, `"status":"in_progress"`, `"vote_type":"upvote"`, `"pending":`, `"name": "queue.vote_received"`},
	"docs/clients.md":     {"event: ready", "retry:"},
	"docs/stream.md":      {"event: reset", "retry:"},
	"docs/recoverability.md": {`"message_id":"manual-delayed-1"`, `"error_group":"SQLSTATE 55P03"`, `"id":17`, `"concurrency":4`, `"paused":true`,
		`"kind":"published","place":"outbox"`, `"kind":"handled","place":"queue.report_created"`},
	"docs/schedules.md":  {`"overdue"`, `"retention"`},
	"docs/open-data.md":  {`"FeatureCollection"`, `<feed xmlns="http://www.w3.org/2005/Atom">`},
	"docs/open311.md":    {"<service_code>2</service_code>", `"service_request_id":"`, "Streetlight is dark at the crossing", "<service_request_updates>"},
	"docs/privacy.md":    {`"removed"`},
	"docs/production.md": {`"open":false,"reason":"flood since 14:00"`},
	"docs/webhooks.md":   {"received", `"secret":"whsec_`, `"category_ids":[2]`},
}

// The curl lines of the manuals work as they are written, in their order: every
// request is answered with success, and shows what the manual says. The addresses
// are this stack's, and the variables that a reader sets have its values.
func TestManualsCurl(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl", "jq", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed; scripts/stack test-up check installs it", program)
		}
	}
	c := prepareStack(t)
	c.switchGuestsOn()
	c.start()
	used := make(map[string]bool)
	files := append(must(filepath.Glob(filepath.Join(root(), "*.md"))), must(filepath.Glob(filepath.Join(root(), "docs", "*.md")))...)
	ran := 0
	for _, file := range files {
		name := must(filepath.Rel(root(), file))
		var blocks []string
		for _, block := range shellBlocks(string(must(os.ReadFile(file)))) {
			if !strings.Contains(block, "curl ") {
				continue
			}
			if reason := notRunReason(name, block, used); reason == "" {
				blocks = append(blocks, block)
			}
		}
		if len(blocks) == 0 {
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) { newManualReader(t, c).follow(name, blocks) })
	}
	if ran != len(shown) {
		t.Errorf("%d manuals have curl, %d of them are known here", ran, len(shown))
	}
	for beginning := range notRun {
		if !used[beginning] {
			t.Errorf("there is no block %q", beginning)
		}
	}
}

// shellBlocks returns the blocks of shell in a document, without the indentation
// of a list that they are in.
func shellBlocks(document string) (blocks []string) {
	for _, found := range regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$").FindAllStringSubmatch(document, -1) {
		blocks = append(blocks, regexp.MustCompile("(?m)^"+found[1]).ReplaceAllLiteralString(found[2], ""))
	}
	return blocks
}

// notRunReason returns why a block is not run, and notes that it was asked for.
func notRunReason(name, block string, used map[string]bool) string {
	for beginning, reason := range notRun {
		if strings.HasPrefix(name+": "+block, beginning) {
			used[beginning] = true
			return reason
		}
	}
	return ""
}

// A manualReader types what a manual says.
type manualReader struct {
	t      *testing.T
	stack  *stack
	folder string
	env    []string
}

// newManualReader returns a reader who is an operator, in a city with something to see.
func newManualReader(t *testing.T, c *stack) *manualReader {
	t.Helper()
	r := &manualReader{t: t, stack: c, folder: t.TempDir()}
	operator := c.userOf("manual-operator", "operator")
	receiver, webhookSecret := newReceiver(t)
	execute(t, c.reportDB, `insert into departments (id, name) values (1, 'Lighting') on conflict do nothing`)
	path := filepath.Join(r.folder, "bin")
	r.write("bin/curl", "#!/bin/bash\n"+
		"echo \"begun\" >>"+r.log()+"\n"+
		"limit=()\n"+
		"[[ \"$*\" != */stream* ]] || limit=(--max-time 4)\n"+ // a reader ends a stream with Ctrl-C
		"exec "+must(exec.LookPath("curl"))+" \"${limit[@]}\" -w '%{stderr}%{http_code} %{method} %{url_effective}\\n' \"$@\" 2>>"+r.log()+"\n")
	r.write("scripts/stack", "#!/bin/sh\ncase \"$*\" in\n"+
		"  'secret rabbitmq/password') echo of-the-broker ;;\n"+
		"  management) echo "+newManagement(t, c.managementURL)+" ;;\n"+
		"  *) exit 2 ;;\nesac\n")
	r.env = append(os.Environ(), "PATH="+path+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"CITY="+c.gateway.URL, "TOKEN="+operator.Token(), "AUTH=Authorization: Bearer "+operator.Token(),
		"ID="+c.signIn("Gone", "resident").ID, "WEBHOOK_URL="+receiver, "WEBHOOK_SECRET="+webhookSecret)
	return r
}

func (r *manualReader) log() string { return filepath.Join(r.folder, "curl.log") }

func (r *manualReader) write(name, content string) {
	r.t.Helper()
	file := filepath.Join(r.folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil { //nolint:gosec // it is run
		r.t.Fatal(err)
	}
}

// follow types the blocks of a manual one after the other in one shell, and checks
// each answer.
func (r *manualReader) follow(name string, blocks []string) {
	r.t.Helper()
	script := strings.Join(blocks, "\n")
	lines := strings.Count(script, "curl ")
	script = strings.NewReplacer("http://127.0.0.1:8080", r.stack.gateway.URL, "http://localhost:8080", r.stack.gateway.URL,
		"http://127.0.0.1:3002", r.stack.report.url()).Replace(script)
	if name == "docs/recoverability.md" {
		r.messages()
		// Each command about a delayed message is about one of its own.
		for i := range delayedMessages {
			script = strings.Replace(script, "$MESSAGE_ID", fmt.Sprintf("manual-delayed-%d", i+1), 1)
		}
	}
	shell := exec.CommandContext(r.t.Context(), "bash", "-c", script)
	shell.Dir, shell.Env = r.folder, r.env
	out, err := shell.CombinedOutput()
	const timedOut = 28 // of curl: a stream
	if err != nil && shell.ProcessState.ExitCode() != timedOut {
		r.t.Errorf("the last command: %v", err)
	}
	for _, want := range shown[name] {
		if !strings.Contains(string(out), want) {
			r.t.Errorf("does not show %s", want)
		}
	}
	r.answers(lines)
	if r.t.Failed() {
		r.t.Logf("what was typed:\n%s\nwhat was shown:\n%s", script, out)
	}
}

// answers checks what curl was answered: lines is how often it was typed at least.
func (r *manualReader) answers(lines int) {
	r.t.Helper()
	log := string(must(os.ReadFile(r.log())))
	if begun := strings.Count(log, "begun\n"); begun < lines {
		r.t.Errorf("curl was begun %d times, and stands in %d lines", begun, lines)
	}
	ids := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	for _, answer := range regexp.MustCompile(`(?m)^(\d{3}) (\S+) https?://[^/]+(/[^?\s]*)\S*$`).FindAllStringSubmatch(log, -1) {
		request := answer[2] + " " + ids.ReplaceAllString(answer[3], "…")
		if answer[1][0] != '2' && answers[request] != answer[1] {
			r.t.Errorf("%s is answered %s", request, answer[1])
		}
	}
}

// delayedMessages is how many messages the manual of recoverability releases and deletes.
const delayedMessages = 2

// messages makes what the manual of recoverability looks at: messages that wait, dead
// letters of one cause, with one of another among them, and one message that was handled.
func (r *manualReader) messages() {
	r.t.Helper()
	report := must(r.stack.signIn("Reader", "resident").CreateReport(r.t.Context(), draft("A story")))
	var message string
	if err := r.stack.reportDB.QueryRow(r.t.Context(), `select id from outbox_messages where report_id = $1`, report.ID).Scan(&message); err != nil {
		r.t.Fatal(err)
	}
	eventually.True(r.t, "the message of the report is handled", func() bool {
		var handled bool
		err := r.stack.notificationDB.QueryRow(r.t.Context(), `select exists (select from processed_messages where message_id = $1)`, message).Scan(&handled)
		return err == nil && handled
	})
	r.env = append(r.env, "MESSAGE_ID="+message, "REPORT_ID="+report.ID.String())
	for i := range delayedMessages {
		execute(r.t, r.stack.notificationDB, `
			insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
			values ($1, $2, $3, now() + interval '1 day', '{}', '{}', '{}')`,
			topology.Queue(event.VoteReceivedKey), fmt.Sprintf("manual-delayed-%d", i+1), event.VoteReceivedKey)
	}
	execute(r.t, r.stack.notificationDB, `
		insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at)
		select $1, 'manual-' || n, $2, '{}', '{}', '{}', 'transient', e, e, now(), now()
		from generate_series(1, 20) as n, lateral (select case n when 17 then 'SQLSTATE 23514' else 'SQLSTATE 55P03' end) as cause (e)
		order by n`,
		topology.Queue(event.VoteReceivedKey), event.VoteReceivedKey)
	eventually.True(r.t, "the dead letters are listed", func() bool {
		return r.stack.userOf("manual-operator", "operator").Do(r.t.Context(), http.MethodGet, "/admin/dlq/messages/17", nil, nil) == nil
	})
}

// newReceiver returns the address of a receiver of webhooks, which answers signed
// requests alone, and its secret.
func newReceiver(t *testing.T) (address, webhookSecret string) {
	t.Helper()
	webhookSecret = "whsec_" + "bWFudWFsLW1hbnVhbC1tYW51YWwtbWFudWFs"
	verifier := must(standardwebhooks.NewWebhook(webhookSecret))
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || verifier.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "received")
	}))
	t.Cleanup(receiver.Close)
	return receiver.URL, webhookSecret
}

// newManagement returns where the broker's management API is for a user cityconnect
// with the password that scripts/stack prints.
func newManagement(t *testing.T, managementURL string) string {
	t.Helper()
	target := must(url.Parse(managementURL))
	management := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		user, password, _ := r.In.BasicAuth()
		r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
		r.Out.Header.Del("Authorization")
		if user == "cityconnect" && password == "of-the-broker" {
			theirs, _ := target.User.Password()
			r.Out.SetBasicAuth(target.User.Username(), theirs)
		}
	}})
	t.Cleanup(management.Close)
	return management.URL
}
