package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto"
	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

// An Action is something that a person does or waits for.
type Action struct {
	what string
	do   chromedp.Action[chromedp.Void]
}

// Find is a JavaScript expression for the first visible element of a kind
// whose text or label contains name. An open dialog hides what is behind it.
func Find(selector, name string) string {
	return fmt.Sprintf(`[...(document.querySelector('dialog[open]') ?? document).querySelectorAll(%s)].find((e) =>
		e.checkVisibility() && (e.getAttribute('aria-label') ?? e.textContent).replaceAll(/\s+/g, ' ').includes(%s))`,
		quote(selector), quote(name))
}

func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always can be
	}
	return string(data)
}

// Go goes to a URL, which is loaded again unless it differs from the present one in
// its fragment alone.
func Go(url string) Action { return Action{"go to " + url, chromedp.Navigate(url)} }

// Back goes back by one page. It does not wait: a page that the browser kept is
// not loaded again.
func Back() Action {
	return Action{"go back", void(chromedp.Evaluate[chromedp.Void]("history.back()"))}
}

// Reload loads the page again.
func Reload() Action { return Action{"reload", chromedp.Reload()} }

// Aim is a JavaScript expression that is true once an element is there, which the next
// click is to hit.
func Aim(element string) string {
	return fmt.Sprintf(`((element) => {
		if (!element) return false;
		globalThis.missed = element;
		document.addEventListener('click', ({ target }) => {
			// The element above it may be another one of its kind.
			if (element.contains(target) || target.closest('a, button, label, input, select, summary')) globalThis.missed = undefined;
		}, { once: true, capture: true });
		return true;
	})(%s)`, element)
}

// Missed is a JavaScript expression that is true if the click after Aim hit nothing that
// can be pressed.
const Missed = `!!globalThis.missed?.isConnected && !globalThis.missed.matches(':disabled')`

// Click clicks on the element of a kind (a CSS selector) that is called name. If
// nothing that can be pressed was hit, because something has just come above it and
// moved it, or the page has just drawn another in its place, it is clicked on again, as
// a person does.
func Click(selector, name string) Action {
	element := Find(selector, name)
	await := Until(Aim(element))
	click := chromedp.Click(chromedp.JSPath(element))
	missed := chromedp.Evaluate[bool](Missed)
	return Action{fmt.Sprintf("click %s %q", selector, name), func(ctx context.Context, t *chromedp.Target) (done chromedp.Void, err error) {
		for again := true; again; {
			if _, err = await.do(ctx, t); err != nil {
				return done, err
			}
			if _, err = click(ctx, t); isReplaced(err) {
				continue
			}
			if err != nil {
				return done, err
			}
			again, err = missed(ctx, t)
			if err != nil {
				return done, ctx.Err() // what was clicked on leads to another page
			}
		}
		return done, nil
	}}
}

// isReplaced reports whether the browser has lost an element between finding it and
// clicking on it.
func isReplaced(err error) bool {
	refused, ok := errors.AsType[*cdproto.Error](err)
	return ok && strings.HasPrefix(refused.Message, "Could not find node")
}

// Then does one action and waits for what comes of it, as a person does who
// looks before the next one.
func (a Action) Then(b Action) Action {
	return Action{a.what + ", " + b.what, chromedp.Steps(a.do, b.do)}
}

// Fill types text into the field that is labelled so, in place of what is there.
func Fill(label, text string) Action {
	control := "(" + Find("label", label) + ")?.control"
	return Action{fmt.Sprintf("fill %q", label), chromedp.Steps(
		chromedp.Focus(chromedp.JSPath(control)),
		void(chromedp.Evaluate[chromedp.Void](control+".select()")),
		Insert(text).do,
	)}
}

// Choose chooses the option called name in the list that is labelled so.
func Choose(label, name string) Action {
	control := "(" + Find("label", label) + ")?.control"
	script := fmt.Sprintf(`((list) => {
		const option = [...(list?.options ?? [])].find((o) => o.textContent.includes(%s));
		if (!option) return false;
		list.value = option.value;
		return list.dispatchEvent(new Event('change', { bubbles: true }));
	})(%s)`, quote(name), control)
	return Until(script)
}

// Insert writes text where the focus is.
func Insert(text string) Action {
	return Action{"insert text", func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
		return chromedp.Void{}, err
	}}
}

// Press presses keys, such as kb.Tab.
func Press(keys string) Action { return Action{"press keys", chromedp.KeyEvent(keys)} }

// PressHolding presses keys while another one is held, such as
// chromedp.ModifierShift.
func PressHolding(held chromedp.Modifier, keys string) Action {
	return Action{"press keys while another is held", chromedp.KeyEvent(keys, chromedp.KeyModifiers(held))}
}

// Enter presses the key that activates what has the focus.
func Enter() Action { return Press(kb.Enter) }

// See waits until an element of a kind is visible whose text contains text.
func See(selector, text string) Action {
	return Until(Find(selector, text))
}

// Until waits until a JavaScript expression is true, also across a reload, and in
// a page that the browser kept for the way back: whoever waits inside of a page
// has to know it, and of a page that is shown again the browser tells nothing. Nor
// is there a frame to wait for in a background tab, which paints nothing.
func Until(expression string) Action {
	ask := chromedp.Evaluate[bool]("Boolean(" + expression + ")")
	return Action{"wait for " + expression, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		for poll := new(backoff.Poll); ; {
			yes, err := ask(ctx, t)
			if err == nil && yes {
				return chromedp.Void{}, nil
			}
			select { // an error says that the page is gone, or not there yet
			case <-ctx.Done():
				return chromedp.Void{}, errors.Join(ctx.Err(), err)
			case <-poll.Next():
			}
		}
	}}
}

// InEachDocument runs JavaScript in every document that the tab loads from now
// on, before the page's own.
func InEachDocument(script string) Action {
	return Command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// Width sets how wide the window is; below 600 it is a phone.
func Width(width, height int) Action {
	return Action{"resize", chromedp.EmulateViewport(int64(width), int64(height))}
}

// Theme sets the system's colours: light or dark.
func Theme(theme string) Action {
	return Command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme},
			{Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
}

// Media shows the page as it is on another medium, such as print.
func Media(medium string) Action {
	return Command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium})
}

// Slow slows the processor down.
func Slow(rate float64) Action {
	return Command(emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: rate})
}

// Freeze stops everything in the tab, as browsers do with tabs that nobody
// looks at; thawed it goes on.
func Freeze(frozen bool) Action {
	state := page.SetWebLifecycleStateStateActive
	if frozen {
		state = page.SetWebLifecycleStateStateFrozen
	}
	return Command(page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state})
}

// Permission sets what the reader has answered to a question of their browser:
// granted, denied or prompt, to one about notifications, for instance.
func Permission(name, setting string) Action {
	return Action{name + " " + setting, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.CallBrowser(ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
			Permission: &cdpbrowser.PermissionDescriptor{Name: name}, Setting: cdpbrowser.PermissionSetting(setting),
			BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
		})
		return chromedp.Void{}, err
	}}
}

// Push hands a push to the service worker of the page at origin, which
// Tab.ServiceWorker has named, as the browser's push service does.
func Push(origin, worker, data string) Action {
	return Command(serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{
		Origin: origin, RegistrationID: serviceworker.RegistrationID(worker), Data: data,
	})
}

// Command sends the browser a command of its own protocol.
func Command[P, R any](method cdp.Command[P, R], params P) Action {
	return Action{string(method.Method), func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, method, params)
		return chromedp.Void{}, err
	}}
}

// void forgets what an action returns.
func void[T any](action chromedp.Action[T]) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := action(ctx, t)
		return chromedp.Void{}, err
	}
}
