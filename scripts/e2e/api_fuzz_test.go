package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

const (
	// fuzzRequests are sent to each service unless FUZZ_REQUESTS says otherwise.
	fuzzRequests = 3000
	// fuzzClients send to each service at the same time.
	fuzzClients = 16
	// fuzzFailures end a run: what follows is more of the same.
	fuzzFailures = 20
	// slowAnswer is when a request counts as hanging. It is far above what any
	// machine needs.
	slowAnswer = 2 * time.Minute
	// fuzzMemory is what a service may have had of the machine's memory, in MB. It has
	// less than a third of that, and with the race detector less than 200 in a short run.
	fuzzMemory = 300
)

// TestAPIFuzz sends each service requests that its OpenAPI document allows, and
// such that break it in one place or several. Whatever is asked, the answer is
// never the service's fault: no 5xx, no broken connection, and each refusal is a
// documented problem that shows nothing internal.
//
// Both services are asked at the same time, by several clients each. What each
// of them sends follows from FUZZ_SEED alone; a failure prints it. The sums, and the
// most memory that each program had, are printed as name=value pairs. Uploads that
// are accepted go on to photo-worker, which must have a verdict on each.
func TestAPIFuzz(t *testing.T) {
	t.Parallel()
	requests := int(numberFrom(t, "FUZZ_REQUESTS", fuzzRequests))
	seed := numberFrom(t, "FUZZ_SEED", 1)
	t.Logf("FUZZ_SEED=%d", seed)
	c := prepareStack(t)
	c.notification.env = with(c.notification.env, "MAIL_BOUNCE_SECRET", bounceSecret)
	c.start()
	c.startPhotoWorker()
	ana := c.signIn("Ana", "resident")
	for i := range 12 {
		file(t, ana, fmt.Sprint("Pothole ", i))
	}
	problems := documentedProblems(t)
	undescribed := map[*process][]func(*rand.Rand) fuzzed{
		c.report: {uploads(c.photographers(t))}, c.notification: {letters, pages},
	}
	began := time.Now()
	var sums fuzzSums
	t.Run("services", func(t *testing.T) { // returns once both have
		for _, p := range []*process{c.report, c.notification} {
			f := &fuzzer{
				stack: c, process: p, doc: c.describe(p), problems: problems, sums: &sums, undescribed: undescribed[p],
				tokens: []string{
					"", ana.Token(), c.userOf("carl", "resident").Token(), c.userOf("olga", "official").Token(),
					c.userOf("pavel", "operator").Token(), c.userOf("pavel", "operator").Token(),
					"eyJhbGciOiJub25lIn0.e30.", "é", strings.Repeat("a", 5000),
				},
			}
			f.operations = f.doc.operations(f.pathValues())
			t.Run(filepath.Base(p.path), func(t *testing.T) {
				t.Parallel()
				f.run(t, requests, uint64(seed))
			})
		}
	})
	photos := c.awaitVerdicts()
	report, notification, photo := c.report.peakMemory()>>20, c.notification.peakMemory()>>20, c.photo.peakMemory()>>20
	if max(report, notification, photo) > fuzzMemory {
		t.Errorf("report-service, notification-service and photo-worker had %d, %d and %d MB at most, must have no more than %d",
			report, notification, photo, fuzzMemory)
	}
	fmt.Printf("%s photos=%d peak_rss_mb_report=%d peak_rss_mb_notification=%d peak_rss_mb_photo_worker=%d seed=%d seconds=%.0f\n",
		&sums, photos, report, notification, photo, seed, time.Since(began).Seconds())
}

// fuzzSums are the account of a run.
type fuzzSums struct {
	requests, accepted, refused  atomic.Int64
	serverErrors, undocumented   atomic.Int64
	connections, resets, noReply atomic.Int64
}

// String returns the line that other programs read. Reconnects follow streams,
// which the clients close, and refusals after which a service closes. Resets are
// connections that it broke while a request was on them, also if the request was
// sent again and answered.
func (s *fuzzSums) String() string {
	return fmt.Sprintf("requests=%d accepted=%d refused=%d status_5xx=%d undocumented=%d reconnects=%d resets=%d unanswered=%d",
		s.requests.Load(), s.accepted.Load(), s.refused.Load(), s.serverErrors.Load(), s.undocumented.Load(),
		max(0, s.connections.Load()-2*fuzzClients), s.resets.Load(), s.noReply.Load())
}

func numberFrom(t *testing.T, variable string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%q: want a whole number above 0", variable, text)
	}
	return n
}

// documentedProblems returns the status of each problem in docs/problems.md.
func documentedProblems(t *testing.T) map[string]int {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root(), "docs", "problems.md"))
	if err != nil {
		t.Fatal(err)
	}
	problems := make(map[string]int)
	for _, m := range regexp.MustCompile(`(?m)^## ([a-z-]+)\n\n(\d{3})\.`).FindAllStringSubmatch(string(page), -1) {
		problems[m[1]], _ = strconv.Atoi(m[2])
	}
	if len(problems) < 10 {
		t.Fatalf("docs/problems.md documents %d problems: the test reads it wrongly", len(problems))
	}
	return problems
}

// A fuzzer makes up requests to one service.
type fuzzer struct {
	*stack
	process    *process
	doc        document
	operations []operation
	problems   map[string]int
	tokens     []string
	// undescribed make requests that no document has.
	undescribed []func(*rand.Rand) fuzzed
	client      *http.Client
	sums        *fuzzSums
}

func (f *fuzzer) run(t *testing.T, requests int, seed uint64) {
	transport := &http.Transport{MaxIdleConnsPerHost: fuzzClients}
	defer transport.CloseIdleConnections()
	f.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var sent, accepted, failures atomic.Int64
	var wg sync.WaitGroup
	for worker := range fuzzClients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker)))
			for sent.Add(1) <= int64(requests) && failures.Load() < fuzzFailures {
				makeUp := f.request
				if random.IntN(8) == 0 {
					makeUp = pick(random, f.undescribed)
				}
				r := makeUp(random)
				status, err := f.send(t.Context(), r)
				if err != nil {
					failures.Add(1)
					t.Errorf("%v\nrequest: %s", err, r)
				}
				f.sums.requests.Add(1)
				switch status / 100 {
				case 2, 3:
					accepted.Add(1)
					f.sums.accepted.Add(1)
				case 4:
					f.sums.refused.Add(1)
				case 5:
					f.sums.serverErrors.Add(1)
				}
			}
		})
	}
	wg.Wait()
	// Requests that are all refused at the door prove little about what is behind.
	if share := float64(accepted.Load()) / float64(requests); share < 0.03 && !t.Failed() {
		t.Errorf("%.1f %% of the requests were accepted: the test proves nothing about the handlers", 100*share)
	}
}

// A fuzzed is a request that was made up.
type fuzzed struct {
	method, path string
	body         []byte
	header       http.Header
}

// String returns r for messages of failures.
func (r fuzzed) String() string {
	return fmt.Sprintf("%s %.300s %.400v %.300q", r.method, r.path, r.header, r.body)
}

// request returns an allowed request, or one that is broken once or twice.
func (f *fuzzer) request(random *rand.Rand) fuzzed {
	op := f.operations[random.IntN(len(f.operations))]
	path, query, _ := strings.Cut(op.path, "?")
	values, _ := url.ParseQuery(query)
	r := fuzzed{method: op.method, header: http.Header{}}
	if token := pick(random, f.tokens); token != "" {
		r.header.Set("Authorization", "Bearer "+token)
	}
	if op.body != nil {
		r.header.Set("Content-Type", "application/json")
	}
	body := op.body
	for range random.IntN(3) {
		switch random.IntN(10) {
		case 0, 1, 2:
			body = mutate(random, body)
		case 3, 4:
			name := pick(random, append(f.doc.queryNames(op), "z"))
			for range 1 + random.IntN(2) { // a parameter may come twice
				values.Add(name, pick(random, []string{"", "1", "2", hostileText(random), hostileText(random)}))
			}
		case 5:
			parts := strings.Split(path, "/")
			parts[1+random.IntN(len(parts)-1)] = url.PathEscape(hostileText(random))
			path = strings.Join(parts, "/")
		case 6:
			r.header.Set(pick(random, []string{
				"If-Match", "If-None-Match", "Idempotency-Key", "Last-Event-ID", "Accept", "Content-Type",
				"Content-Encoding", "Traceparent", "X-Request-ID", "Cookie", "Origin", "Sec-Fetch-Site", "Range",
			}), headerText(random))
		case 7:
			r.method = pick(random, []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"})
		case 8:
			if body == nil {
				body = map[string]any{}
			}
			r.header.Set("Content-Type", pick(random, []string{"application/json; charset=utf-8", "text/plain", "application/xml", ""}))
		case 9:
			name, value := longHeader(random)
			r.header.Set(name, value)
		}
	}
	if body != nil {
		r.body, _ = json.Marshal(body)
		switch random.IntN(12) {
		case 0:
			r.body = r.body[:random.IntN(len(r.body)+1)]
		case 1:
			r.body = []byte(pick(random, []string{
				"null", "[]", `""`, "{}", "7", "{", "\xff", `{"a":1}{`, strings.Repeat("[", 9000), `{"title":"\ud800"}`, strings.Repeat(" ", 70_000),
			}))
		case 2: // numbers that JSON knows and Go may not
			digits := regexp.MustCompile(`\d+`)
			r.body = digits.ReplaceAllFunc(r.body, func([]byte) []byte {
				return []byte(pick(random, []string{"10.0", "1e2", "1E400", "-0", "9223372036854775808", "2147483648", "0.5"}))
			})
		case 3:
			r.body = grown(random, body)
		case 4:
			r.body = decorated(random, r.body)
		}
	}
	r.path = path
	if len(values) > 0 {
		r.path += "?" + values.Encode()
	}
	return r
}

// queryNames returns the names of op's query parameters.
func (d document) queryNames(op operation) (names []string) {
	method, path, _ := strings.Cut(op.template, " ")
	paths, _ := d["paths"].(map[string]any)
	parameters, _ := d.object(d.object(paths[path])[strings.ToLower(method)])["parameters"].([]any)
	for _, p := range parameters {
		if param := d.object(p); param["in"] == "query" {
			names = append(names, fmt.Sprint(param["name"]))
		}
	}
	return names
}

// mutate returns value with one thing in it replaced, removed or added.
func mutate(random *rand.Rand, value any) any {
	object, ok := value.(map[string]any)
	if !ok || len(object) == 0 {
		return hostileValue(random)
	}
	object = maps.Clone(object)
	name := pick(random, slices.Sorted(maps.Keys(object)))
	switch random.IntN(5) {
	case 0:
		delete(object, name)
	case 1:
		object[hostileText(random)] = hostileValue(random)
	case 2:
		object[name] = mutate(random, object[name])
	default:
		object[name] = hostileValue(random)
	}
	return object
}

// grown returns body as JSON of up to 64 KiB, with something in it as often, as
// deep or as long as that has room for: work that grows faster shows as memory, or
// as time.
func grown(random *rand.Rand, body any) []byte {
	object := map[string]any{}
	if members, ok := body.(map[string]any); ok {
		object = maps.Clone(members)
	}
	name := "k"
	if len(object) > 0 && random.IntN(3) > 0 {
		name = pick(random, slices.Sorted(maps.Keys(object)))
		delete(object, name)
	}
	encoded, _ := json.Marshal(object)
	room := max(100, 64<<10-len(encoded)-len(name)-20)
	repeat := func(part string) string { return strings.Repeat(part, room/len(part)) }
	depth := min(9000, room/12)
	var grown string
	switch random.IntN(10) {
	case 0, 1, 2:
		var members strings.Builder
		for i := 0; members.Len() < room-20; i++ {
			fmt.Fprintf(&members, `"k%d":0,`, i)
		}
		grown = members.String() + `"k":0`
	case 3:
		grown = repeat(`"`+name+`":0,`) + `"k":0`
	case 4, 5:
		grown = `"` + name + `":[` + repeat(pick(random, []string{"{},", `"",`, "null,", "0,", "[],", `"\u0000",`, `{"k":0},`})) + "0]"
	case 6:
		grown = `"` + name + `":` + strings.Repeat("[", depth) + `"\u0000"` + strings.Repeat("]", depth)
	case 7:
		grown = `"` + name + `":` + strings.Repeat(`{"a":`, depth) + "0" + strings.Repeat("}", depth)
	case 8:
		grown = `"` + name + `":"` + repeat(pick(random, []string{"a", "<", `\u0000`, "\u0301", "\u2028", " "})) + `"`
	case 9:
		grown = `"` + name + `":` + repeat(pick(random, []string{"1", "9", "12345"}))
	}
	if len(object) > 0 {
		grown = "," + grown
	}
	return slices.Concat(encoded[:len(encoded)-1], []byte(grown+"}"))
}

// decorations are what texts may carry beside their letters: no width, a direction,
// halves of pairs, colours of emojis, and what no text may have.
var decorations = []string{
	`\u200b`, `\u200d`, `\ufeff`, `\u202e`, `\u2066`, `\u2069`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ude00\ud83d`, `\ud83d\udc69\u200d\ud83d\udc67`,
	`\ud83c\udff3\ufe0f`, `\u0000`, `\u0001`, `\u001b[31m`, `\u007f`, `\u0085`, `\u2028`, `\u0301`, `\ufdd0`, `\uffff`, `\udb40\udc41`, "\xed\xa0\x80", "\xc0\x80",
}

// decorated returns JSON with decorations in some of its texts.
func decorated(random *rand.Rand, body []byte) []byte {
	return regexp.MustCompile(`:"`).ReplaceAllFunc(body, func(start []byte) []byte {
		return append(start, strings.Repeat(pick(random, decorations), pick(random, []int{0, 1, 3, 200}))...)
	})
}

// longHeader returns a header with a list in it that is as long as may be.
func longHeader(random *rand.Rand) (name, value string) {
	list := pick(random, [][2]string{
		{"If-Match", `"1",`}, {"If-None-Match", `W/"1",`}, {"Cookie", "a=1; "}, {"Accept", "text/plain;q=0.1,"}, {"Accept-Language", "id;q=0.1,"},
		{"Accept-Encoding", "gzip;q=0,"}, {"Range", "bytes=0-1,0-1,"}, {"Content-Type", "application/json;a*0=b;"}, {"X-Forwarded-Proto", "https,"},
		{"Traceparent", "00-"}, {"Authorization", "Bearer a.b.c."}, {"Content-Digest", "sha-256=:a:,"}, {"Prefer", "wait=1,"},
	})
	return list[0], strings.Repeat(list[1], 1+random.IntN(7000/len(list[1])))
}

func hostileValue(random *rand.Rand) any {
	return pick(random, []any{
		nil, true, false, 0, -1, 1, 1.5, 1e300, 90, -90, 180, -180, 90.0000001, 179.99999999, 1e-320, -1e-7,
		2147483648, 1 << 53, "", "x", []any{}, []any{[]any{}}, map[string]any{}, map[string]any{"a": nil},
		hostileText(random), hostileText(random), hostileText(random),
	})
}

// hostileTexts have what programs trip over: quotes and commands of SQL, HTML and
// shells, numbers at the edges of their types, characters without a width or
// with a direction, and lengths.
var hostileTexts = []string{
	"", " ", "0", "-1", "01", "+1", "1.0", "1e3", "2147483648", "9223372036854775808", "NaN", "true", "TRUE", "null", "undefined",
	"'", `"`, `\`, "' or 1=1 --", `"; drop table reports; --`, "%", "_", "${jndi:ldap://x}", "{{7*7}}", "<script>alert(1)</script>",
	"../../etc/passwd", "..%2f..", "%00", "\x00", "a\x00b", "\n", "\r\nX: y", "\u200b", "\u202etxt", "\ufeff", "é", "e\u0301", "𝕏", "👩‍👩‍👧", "ﷺ",
	"pending", "rejected", "upvote", "anonymous", "report.created", "queue.vote_received", "v1.a.1", "v1.0c0ffee0.1", "v1.0c0ffee0.9223372036854775808",
	"0198c0de-0000-7000-8000-000000000001", "00000000-0000-0000-0000-000000000000", "{0198c0de-0000-7000-8000-000000000001}",
	"106,-7,107,-6", "180,90,-180,-90", "-180,-90,180,90", "179,-90,-179,90", "0,0,0,0", "1e-320,0,1e300,1", "1,2,3", "nan,nan,nan,nan",
	`{"type":"Polygon","coordinates":[[[180,90],[-180,-90]]]}`, "=HYPERLINK(\"http://x\")", "@SUM(1+1)", "+1", "-2+3", "\t=1", "a,b;c", "a & b | !c <-> d:*", "(((", "lampu jalan mati", "l'or d\"x", "a:b", "*:*",
	"2026-02-30T00:00:00Z", "0000-00-00", `"1"`, `W/"1"`, "*",
}

func hostileText(random *rand.Rand) string {
	switch random.IntN(8) {
	case 0:
		return strings.Repeat(pick(random, hostileTexts), 1+random.IntN(300))
	case 1:
		return uuid.NewString()
	}
	return pick(random, hostileTexts)
}

// headerText is a text that net/http agrees to send.
func headerText(random *rand.Rand) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, hostileText(random))
	return text[:min(len(text), 6000)]
}

func pick[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }

// internals are pieces of text that only the inside of a service has.
var internals = regexp.MustCompile(`SQLSTATE|strconv\.|pgconn|pgx|goroutine |\.go:\d|runtime error|json: |amqp|127\.0\.0\.1:\d|/root/|/tmp/|postgres://`)

// send sends r and returns an error if the answer is not as documented.
func (f *fuzzer) send(ctx context.Context, r fuzzed) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, slowAnswer)
	defer cancel()
	tries := 0 // net/http sends a request again whose connection broke
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		tries++
		if !c.Reused {
			f.sums.connections.Add(1)
		}
	}})
	req, err := http.NewRequestWithContext(ctx, r.method, f.process.url()+r.path, bytes.NewReader(r.body))
	if err != nil {
		return 0, nil // nothing that could be sent
	}
	req.Header = r.header
	resp, err := f.client.Do(req)
	if err != nil {
		f.sums.noReply.Add(1)
		return 0, fmt.Errorf("no answer: %w", err)
	}
	if tries > 1 {
		f.sums.resets.Add(1)
		err = errors.New("the service broke the connection before it answered")
	}
	defer func() { _ = resp.Body.Close() }()
	if err == nil {
		err = f.check(r, resp)
	}
	return resp.StatusCode, err
}

// check returns an error if the answer is not as documented.
func (f *fuzzer) check(r fuzzed, resp *http.Response) error {
	mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if mediaType == "text/event-stream" {
		return nil // it goes on; closing it is the client's right
	}
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		f.sums.noReply.Add(1)
		return fmt.Errorf("answer %d broke off: %w", resp.StatusCode, err)
	case resp.StatusCode == http.StatusServiceUnavailable && strings.HasPrefix(r.path, "/readyz"):
		return nil // a write took too long on a starved machine, and it says so
	case resp.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("answered %d %.300s", resp.StatusCode, answer)
	case resp.StatusCode < http.StatusBadRequest || r.method == http.MethodHead:
		return nil
	}
	if mediaType == "text/html" && strings.Contains(r.header.Get("Accept"), "text/html") { // a page, for people
		if found := internals.Find(answer); found != nil {
			return fmt.Errorf("the page shows %q: %.300s", found, answer)
		}
		return nil
	}
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && mediaType == "text/plain" { // of a file of the page, by net/http
		return nil
	}
	err = f.checkProblem(resp, mediaType, answer)
	if err != nil {
		f.sums.undocumented.Add(1)
	}
	return err
}

// checkProblem returns an error unless the answer is a documented problem that
// shows nothing internal.
func (f *fuzzer) checkProblem(resp *http.Response, mediaType string, answer []byte) error {
	var problem struct {
		Type   string
		Title  string
		Status int
	}
	if err := json.Unmarshal(answer, &problem); err != nil || mediaType != "application/problem+json" {
		// Refusals by net/http, before any handler, are described in docs/problems.md.
		if mediaType == "text/plain" && resp.Header.Get("X-Request-Id") == "" {
			return nil
		}
		return fmt.Errorf("answered %d %s %.300q, want application/problem+json", resp.StatusCode, mediaType, answer)
	}
	name := problem.Type[strings.LastIndexByte(problem.Type, '#')+1:]
	if f.problems[name] != resp.StatusCode || problem.Status != resp.StatusCode {
		return fmt.Errorf("answered %d %s, documented with status %d", resp.StatusCode, name, f.problems[name])
	}
	if found := internals.Find(answer); found != nil {
		return fmt.Errorf("the answer shows %q: %.300s", found, answer)
	}
	return nil
}

// pathValues returns what can stand in the paths of the documents.
func (f *fuzzer) pathValues() map[string][]string {
	values := map[string][]string{"queue": {"queue.vote_received", "no.such"}, "id": {"1", uuid.NewString()}, "name": {"retention", "no_such"}}
	rows, err := f.reportDB.Query(f.t.Context(), `select id::text from reports union all select id::text from outbox_messages order by 1 limit 6`)
	if err != nil {
		f.t.Fatalf("collect ids: %v", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			f.t.Fatalf("collect ids: %v", err)
		}
		values["id"] = append(values["id"], id)
	}
	return values
}
