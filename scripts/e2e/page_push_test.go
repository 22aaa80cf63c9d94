package e2e

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// subscribes stands in for the browser's push service, which none of the tests
// reaches: what it would say is made in the page, and kept for its tab.
const subscribes = `(() => {
	if (!globalThis.PushManager) return;
	const encode = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
	const decode = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0)).buffer;
	const kept = () => JSON.parse(sessionStorage.getItem('push'));
	PushManager.prototype.getSubscription = async () => kept() && {
		options: { applicationServerKey: decode(kept().asked) },
		toJSON: () => kept().says,
		unsubscribe: async () => (sessionStorage.removeItem('push'), true),
	};
	PushManager.prototype.subscribe = async function ({ applicationServerKey: asked }) {
		const pair = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, ['deriveBits']);
		const p256dh = encode(await crypto.subtle.exportKey('raw', pair.publicKey));
		const auth = encode(crypto.getRandomValues(new Uint8Array(16)));
		sessionStorage.setItem('push', JSON.stringify({ asked, says: { endpoint: 'https://` + pushHost + `/' + crypto.randomUUID(), keys: { p256dh, auth } } }));
		return this.getSubscription();
	};
})()`

// A resident has this browser notified, says about what, and ends it again: by
// removing it, from elsewhere, and by signing out.
func TestPageDevices(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	devices := func(want int) {
		t.Helper()
		eventually.True(t, fmt.Sprintf("%d devices", want), func() bool {
			var n int
			err := c.notificationDB.QueryRow(t.Context(), `select count(*) from push_subscriptions`).Scan(&n)
			return err == nil && n == want
		})
	}
	subscribed := func(want bool) browser.Action {
		return browser.Until(fmt.Sprintf(`(sessionStorage.getItem('push') !== null) === %t`, want))
	}
	page := c.readerOf(chromium, c.gateway.URL, ana).open("settings", browser.Permission("notifications", "denied"), browser.InEachDocument(subscribes))
	page.do(browser.See(".note", "This browser blocks notifications"))
	page.checkAccessible("settings, notifications denied")

	page.do(browser.Permission("notifications", "granted"), browser.Reload(), browser.Width(360, 740))
	page.do(browser.Click("button", "Notify this device"), browser.See(".rows li", "This device"), browser.See(".rows li", "Chrome, Linux"), subscribed(true))
	devices(1)
	page.do(
		browser.Until(`document.querySelector('form[aria-labelledby=at-once] input')?.checked`), // new statuses
		browser.Click("label.check", "Votes on my reports"), browser.Click("form button", "Save"), browser.See(".toast", "Saved"),
	)
	eventually.True(t, "votes are wanted, too", func() bool {
		var wanted bool
		err := c.notificationDB.QueryRow(t.Context(), `select kinds @> '{report.status.updated,report.vote.received}' from push_preferences`).Scan(&wanted)
		return err == nil && wanted
	})
	page.checkAccessible("settings with a device, on a phone")
	page.checkNarrow("settings with a device")

	// Its push service has given the browser another address: the page tells it, and
	// there is one device as before.
	var before uuid.UUID
	if err := c.notificationDB.QueryRow(t.Context(), `select id from push_subscriptions`).Scan(&before); err != nil {
		t.Fatal(err)
	}
	page.do(browser.Until(`((push) => {
		push.says.endpoint += '-renewed';
		sessionStorage.setItem('push', JSON.stringify(push));
		return true;
	})(JSON.parse(sessionStorage.getItem('push')))`), browser.Go(c.gateway.URL), live)
	eventually.True(t, "the device has another address", func() bool {
		var renewed, all int
		err := c.notificationDB.QueryRow(t.Context(), `select count(*) filter (where id <> $1), count(*) from push_subscriptions`, before).Scan(&renewed, &all)
		return err == nil && renewed == 1 && all == 1
	})
	page.do(browser.Go(c.gateway.URL+"/settings"), browser.See(".rows li", "This device"), subscribed(true))

	// Pushes are shown once while no page is open, the newest of them.
	origin, path := c.gateway.URL, "/reports/"+file(t, ana, "Dark crossing").ID.String()
	page.do(browser.Until(`(navigator.serviceWorker.ready.then(({ active }) => (globalThis.active = active.state)), globalThis.active === 'activated')`))
	worker, err := page.ServiceWorker(origin)
	if err != nil {
		t.Fatal(err)
	}
	news := func(body string) browser.Action {
		return browser.Push(origin, worker, fmt.Sprintf(`{"title":"Dark crossing","body":%q,"lang":"en","tag":"topic","url":%q}`, body, path))
	}
	page.do(browser.Go("about:blank"), news("Now in progress"), news("Now resolved"))
	page.do(browser.Go(origin+"/settings"), browser.Until(`(
		navigator.serviceWorker.ready.then((worker) => worker.getNotifications()).then((all) => (globalThis.shown = all.map(({ title, body, data }) => [title, body, data].join()).join(';'))),
		globalThis.shown === 'Dark crossing,Now resolved,`+path+`')`))

	page.do(browser.Click(".rows button", "Remove"), browser.See("button", "Notify this device"), subscribed(false))
	devices(0)

	page.do(browser.Click("button", "Notify this device"), browser.See(".rows li", "This device"))
	devices(1)
	execute(t, c.notificationDB, `delete from push_subscriptions`) // from elsewhere
	page.do(browser.Reload(), browser.See("button", "Notify this device"), subscribed(false))

	page.do(browser.Click("button", "Notify this device"), browser.See(".rows li", "This device"))
	devices(1)
	page.do(browser.Click(".tools button", "Menu"), browser.Click("button", "Sign out"), browser.See(".who", "Sign in"), subscribed(false))
	devices(0)
	page.checkFaults()
}
