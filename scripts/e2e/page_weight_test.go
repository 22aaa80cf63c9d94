package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// The weight of the page on a phone is bounded: the page's code without the map, the
// map only when it is looked at, and a list whose reports are as long as they can be.
func TestPageWeight(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	ana := c.signIn("Ana", "resident")
	for i := range 50 {
		in := longReport()
		in.Title = fmt.Sprintf("Lampu penerangan jalan padam di simpang %d", i)
		in.Latitude, in.Longitude = new(-6.5950), new(106.7995)
		if _, err := ana.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString()); err != nil {
			t.Fatal(err)
		}
	}
	nobody := c.behindNginx()
	page := nobody.open("", browser.Width(360, 740))
	page.do(browser.Until(`document.querySelectorAll('.card').length === 20`))
	sizes := page.sizes()
	t.Logf("code %d bytes, list %d bytes, compressed", sizes.Code, sizes.List)
	if sizes.Code > 64_500 {
		t.Errorf("script and style have %d bytes, want 64,500 at most", sizes.Code)
	}
	if sizes.List > 3_000 {
		t.Errorf("a list of 20 reports has %d bytes, want 3,000 at most", sizes.List)
	}
	if sizes.Map > 0 {
		t.Errorf("%d bytes of the map were loaded, which nobody has looked at", sizes.Map)
	}
	page.do(browser.Click("button", "Map"), mapShown)
	if sizes = page.sizes(); sizes.Map == 0 {
		t.Error("the map was looked at, and is not among what was loaded: the test looks in the wrong place")
	}
	t.Logf("map %d bytes, compressed", sizes.Map)
	if sizes.Map > 350_000 {
		t.Errorf("the map's code has %d bytes, want 350,000 at most", sizes.Map)
	}
}

// fast makes an hour of the page's timers half a minute. How long a stream may be silent
// stays as it is: the server's heartbeats are as slow as ever.
var fast = browser.InEachDocument(`{
	const times = 120, silence = 45_000;
	const { setTimeout, setInterval } = globalThis;
	const now = Date.now;
	const begun = now();
	globalThis.setTimeout = (act, ms, ...rest) => setTimeout(act, ms === silence ? ms : ms / times, ...rest);
	globalThis.setInterval = (act, ms, ...rest) => setInterval(act, ms / times, ...rest);
	Date.now = () => begun + (now() - begun) * times;
}`)

// An hour in which nobody does anything costs next to nothing besides the stream.
func TestPageIdles(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	report := "reports/" + file(t, ana, "Dark crossing").ID.String()
	const requests = `performance.getEntriesByType('resource').length`
	pages := map[string]tab{}
	for address, user := range map[string]*client.Client{"": nil, "mine": ana, report: ana, "queue": olga, "queue/photos": olga, "queue/abuse": olga} {
		pages[address] = c.reader(user).open(address, fast)
		pages[address].do(browser.See("h1, h2", ""), browser.Until(`(globalThis.begun ??= Date.now(), Date.now() - begun > 600_000)`),
			browser.Until(`(globalThis.before = `+requests+`, globalThis.hour = performance.now() + 30_000, globalThis.begun = Date.now())`))
	}
	for address, page := range pages {
		page.do(browser.Until(`Date.now() - begun > 3_600_000`))
		asked := ask[[]string](t, page.Tab, `performance.getEntriesByType('resource').slice(before).filter(({ startTime }) => startTime < hour).map(({ name }) => new URL(name).pathname)`)
		t.Logf("/%s: %d requests", address, len(asked))
		if len(asked) > 10 {
			t.Errorf("/%s: %d requests in an idle hour, want 10 at most: %q", address, len(asked), asked)
		}
		page.checkFaults()
	}
}

// transfers are sizes as they came over the wire, in bytes.
type transfers struct{ Code, Map, List int }

// sizes returns what the tab has loaded.
func (p tab) sizes() transfers {
	p.t.Helper()
	loaded, err := browser.Ask[transfers](p.Tab, `(() => {
		const sum = { Code: 0, Map: 0, List: 0 };
		for (const { name, encodedBodySize } of performance.getEntriesByType('resource')) {
			const { pathname } = new URL(name);
			if (pathname === '/reports') sum.List = Math.max(sum.List, encodedBodySize);
			else if (/\/(plot|maplibre)[^/]*\.(js|css)$/.test(pathname)) sum.Map += encodedBodySize;
			else if (/\.(js|css)$/.test(pathname)) sum.Code += encodedBodySize;
		}
		return sum;
	})()`)
	if err != nil {
		p.t.Fatal(err)
	}
	return loaded
}

// behindNginx returns nobody, who reaches the services through the gateway as
// cities have it.
func (c *stack) behindNginx() reader {
	c.t.Helper()
	address := func(p *process) []string { return []string{strings.TrimPrefix(p.url(), "http://")} }
	nginx := gatewaytest.Start(c.t, address(c.report), address(c.notification), "GATEWAY_LIMITS", "off")
	return c.readerOf(shell, nginx.URL, nil)
}

// TestPageFigures is `make bench-page`: a phone's first visit, on a processor
// slowed down four times and over a slow 4G, and a minute in which a hundred
// reports come in, beside the page of another revision, whose built files are in
// the folder PAGE_BENCH_BASE. It asserts nothing.
func TestPageFigures(t *testing.T) {
	folder := os.Getenv("PAGE_BENCH_BASE")
	if folder == "" {
		t.Skip("it measures the machine: make bench-page BASE=revision")
	}
	const passes = 5
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	for i := range 50 {
		file(t, ana, fmt.Sprintf("Report %d", i))
	}
	address := func(url string) []string { return []string{strings.TrimPrefix(url, "http://")} }
	sides := []string{"base", "head"}
	at := map[string]string{
		"base": gatewaytest.Start(t, address(c.report.url()), address(oldPage(t, folder, c.notification.url())), "GATEWAY_LIMITS", "off").URL,
		"head": gatewaytest.Start(t, address(c.report.url()), address(c.notification.url()), "GATEWAY_LIMITS", "off").URL,
	}
	usable, thread := map[string][]float64{}, map[string][]float64{}
	code, list := map[string]float64{}, map[string]float64{}
	for range passes {
		for _, side := range sides {
			visitor := c.readerOf(chromium, at[side], nil)
			page := visitor.open("", browser.Width(360, 740), browser.Slow(4), slow4G, threadTime)
			page.do(browser.Until(`performance.getEntriesByName('list').length > 0`))
			busy, err := page.ThreadTime()
			if err != nil {
				t.Fatal(err)
			}
			ms, err := browser.Ask[float64](page.Tab, `performance.getEntriesByName('list')[0].startTime`)
			if err != nil {
				t.Fatal(err)
			}
			sizes := page.sizes()
			usable[side], thread[side] = append(usable[side], ms), append(thread[side], busy*1000)
			code[side], list[side] = float64(sizes.Code), float64(sizes.List)
			visitor.Close()
		}
	}
	minute := map[string]float64{}
	for _, side := range sides {
		minute[side] = c.minuteOfReports(at[side])
	}
	ratio := func(name, unit string, of map[string]float64) {
		t.Logf("%-36s base %9.0f %s, head %9.0f %s, ratio %.2f", name, of["base"], unit, of["head"], unit, of["head"]/of["base"])
	}
	medians := func(of map[string][]float64) map[string]float64 {
		result := map[string]float64{}
		for side, values := range of {
			slices.Sort(values)
			result[side] = values[len(values)/2]
		}
		return result
	}
	ratio("the list is usable after, median of 5", "ms", medians(usable))
	ratio("main thread until then, median of 5", "ms", medians(thread))
	ratio("script and style without the map", "B", code)
	ratio("a list request", "B", list)
	ratio("a minute with 100 new reports", "B", minute)
}

// minuteOfReports files a hundred reports within a minute, and returns how many
// bytes a page that is open has got.
func (c *stack) minuteOfReports(gateway string) float64 {
	c.t.Helper()
	ana := c.signIn("Ana", "resident")
	url, received := metered(c.t, gateway)
	visitor := c.readerOf(chromium, url, nil)
	visitor.open("", browser.Width(360, 740))
	before := received.Load()
	pace := time.NewTicker(600 * time.Millisecond)
	defer pace.Stop()
	for i := range 100 {
		<-pace.C
		file(c.t, ana, fmt.Sprintf("Filed in between %d", i))
	}
	bytes := received.Load() - before
	visitor.Close()
	return float64(bytes)
}

// metered passes connections on to a server, and counts what comes back.
func metered(t *testing.T, target string) (url string, received *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	received = new(atomic.Int64)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", strings.TrimPrefix(target, "http://"))
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.Copy(client, io.TeeReader(server, counter{received})); _ = client.Close() }()
		}
	}()
	return "http://" + listener.Addr().String(), received
}

type counter struct{ sum *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.sum.Add(int64(len(p)))
	return len(p), nil
}

// oldPage serves the built files in a folder, compressed as the service does,
// and anything else from the service.
func oldPage(t *testing.T, folder, service string) string {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	rest := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path
		if name == "/" {
			name = "/index.html"
		}
		body, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil {
			rest.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(filepath.Ext(name)))
		w.Header().Set("Content-Encoding", "gzip")
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		_, _ = z.Write(body)
		_ = z.Close()
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// slow4G is what Lighthouse means by it: 150 ms, 1.6 Mbit/s down, 0.75 up.
var slow4G = browser.Command(network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
	MatchedNetworkConditions: []*network.Conditions{{Latency: 150, DownloadThroughput: 1.6e6 / 8, UploadThroughput: 0.75e6 / 8}},
})

// threadTime has the browser count the time of its main thread, and not that of
// the clock: what else the machine does matters less.
var threadTime = browser.Command(performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
