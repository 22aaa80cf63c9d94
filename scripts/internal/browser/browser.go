// Package browser opens CityConnect's page in a headless Chromium and does in
// it what people do. The browser tests and the screenshots are built on it.
package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"
)

// Patience ends a wait that has failed. Nothing passes or fails by how long it
// takes below it.
const Patience = 4 * time.Minute

// sessionCookie is what POST /session sets.
const sessionCookie = "cityconnect_session"

// A Browser is a running Chromium.
type Browser struct{ ctx context.Context }

// Start starts a Chromium that ends with the returned function.
func Start(ctx context.Context) (*Browser, func(), error) { return start(ctx) }

// StartShell is Start for Chromium's headless shell, if it is installed. It needs
// half the processor time, and lacks what belongs to the browser around the page:
// subscriptions to pushes, and the cache for going back.
func StartShell(ctx context.Context) (*Browser, func(), error) {
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		return start(ctx)
	}
	return start(ctx, chromedp.ExecPath(path))
}

func start(ctx context.Context, more ...chromedp.ExecAllocatorOption) (*Browser, func(), error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, // as root, and in containers, there is none to be had
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("lang", "en"),
		// Tabs in the background are as awake as a reader's other window.
		chromedp.Flag("disable-features", "Translate,CalculateNativeWinOcclusion"),
	)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(options, more...)...)
	ctx, cancel := chromedp.NewContext(ctx)
	end := func() { cancel(); stop() }
	if err := chromedp.Do(ctx); err != nil {
		end()
		return nil, nil, fmt.Errorf("start Chromium (Debian's package chromium, or another one in the PATH): %w", err)
	}
	return &Browser{ctx}, end, nil
}

// A Person has their own cookies and storage.
type Person struct {
	ctx  context.Context
	base string
	// Close closes all tabs and forgets what they kept.
	Close context.CancelFunc
}

// Person returns someone who reads the page at base, signed in by token or,
// without one, as nobody.
func (b *Browser) Person(base, token string) (*Person, error) {
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := &Person{ctx, strings.TrimRight(base, "/"), cancel}
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("open a window: %w", err)
	}
	if token == "" {
		return p, nil
	}
	return p, p.SignIn(token)
}

// SignIn gives the person a session, as POST /session does.
func (p *Person) SignIn(token string) error {
	u, err := url.Parse(p.base)
	if err != nil {
		return err
	}
	yes := true
	_, err = chromedp.Call(p.ctx, network.SetCookie, network.SetCookieParams{
		Name: sessionCookie, Value: token, Domain: u.Hostname(), Path: "/", HTTPOnly: &yes, SameSite: network.CookieSameSiteStrict,
	})
	if err != nil {
		return fmt.Errorf("set the session cookie: %w", err)
	}
	return nil
}

// EndSession takes the session away, as its end does; pages learn it when they
// ask next.
func (p *Person) EndSession() error {
	u, err := url.Parse(p.base)
	if err != nil {
		return err
	}
	_, err = chromedp.Call(p.ctx, network.DeleteCookies, network.DeleteCookiesParams{
		Name: sessionCookie, Domain: u.Hostname(), Path: "/",
	})
	if err != nil {
		return fmt.Errorf("delete the session cookie: %w", err)
	}
	return nil
}

// A Tab shows the page.
type Tab struct {
	ctx  context.Context
	base string
	// Close closes the tab.
	Close context.CancelFunc
}

// Open opens a tab at an address of the page, such as reports/….
func (p *Person) Open(address string, first ...Action) (*Tab, error) {
	ctx, cancel := chromedp.NewContext(p.ctx)
	tab := &Tab{ctx, p.base, cancel}
	if err := chromedp.Do(ctx); err != nil { // not under a deadline, which would end the tab
		return nil, fmt.Errorf("open a tab: %w", err)
	}
	first = append(first, InEachDocument(recorder))
	return tab, tab.Do(append(first, Go(p.base+"/"+address))...)
}

// recorder keeps what goes wrong in a page: its own errors, and what its
// policy forbade.
const recorder = `globalThis.faults = [];` + Listeners

// Listeners is JavaScript that pushes such faults to what is called faults.
const Listeners = `
addEventListener('error', (e) => faults.push(String(e.message)));
addEventListener('unhandledrejection', (e) => faults.push(String(e.reason)));
addEventListener('securitypolicyviolation', (e) => faults.push(e.violatedDirective + ' ' + e.blockedURI));`

// Faults returns what went wrong in the page since it was loaded.
func (t *Tab) Faults() ([]string, error) { return Ask[[]string](t, "globalThis.faults ?? []") }

// ServiceWorker returns what the browser calls the service worker of the page at
// origin, which the tab shows.
func (t *Tab) ServiceWorker(origin string) (string, error) {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	events := chromedp.Events(ctx, serviceworker.WorkerRegistrationUpdated)
	if _, err := chromedp.Call(ctx, serviceworker.Enable, cdp.Empty{}); err != nil {
		return "", fmt.Errorf("watch service workers: %w", err)
	}
	for ev, err := range events {
		if err != nil {
			return "", fmt.Errorf("wait for the service worker: %w", err)
		}
		for _, r := range ev.Registrations {
			if r.ScopeURL == origin+"/" && !r.IsDeleted {
				return r.RegistrationID.String(), nil
			}
		}
	}
	return "", ctx.Err()
}

// Requests watches what the tab requests, and returns a function that ends this and
// returns the addresses.
func (t *Tab) Requests() (func() []string, error) {
	ctx, stop := context.WithCancel(t.ctx)
	events := chromedp.Events(ctx, network.RequestWillBeSent)
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		stop()
		return nil, fmt.Errorf("watch requests: %w", err)
	}
	var addresses []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ev, err := range events {
			if err != nil {
				return
			}
			addresses = append(addresses, ev.Request.URL)
		}
	}()
	return func() []string {
		stop()
		<-done
		return addresses
	}, nil
}

// Do does what a person does, one after the other, and waits for each.
func (t *Tab) Do(actions ...Action) error {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	for _, action := range actions {
		if err := chromedp.Do(ctx, action.do); err != nil {
			return fmt.Errorf("%s: %w", action.what, err)
		}
	}
	return nil
}

// Ask evaluates JavaScript in the page.
func Ask[T any](t *Tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return v, fmt.Errorf("ask %s: %w", expression, err)
	}
	return v, nil
}

// Heap returns how many bytes the page's objects take once all garbage is gone.
func (t *Tab) Heap() (float64, error) {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		return 0, fmt.Errorf("collect the page's garbage: %w", err)
	}
	usage, err := chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		return 0, fmt.Errorf("ask for the page's heap: %w", err)
	}
	return usage.UsedSize, nil
}

// ThreadTime returns for how long the page's main thread has worked, in seconds;
// of its own time, once the domain Performance was enabled with thread ticks.
func (t *Tab) ThreadTime() (float64, error) {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	result, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		return 0, fmt.Errorf("ask for the page's metrics: %w", err)
	}
	for _, metric := range result.Metrics {
		if metric.Name == "TaskDuration" {
			return metric.Value, nil
		}
	}
	return 0, errors.New("the browser does not say how long the main thread has worked")
}
