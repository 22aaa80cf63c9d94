package e2e

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// An official files for a caller by the keyboard alone while they speak, and sees how the
// report came. The caller's address gets the link, is replaced after a typing error, and
// gets mails once the caller has pressed the button.
func TestPageFilesForACaller(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	mails := c.openMailServer()
	c.worker.start()
	page := keys{tab: c.reader(c.signIn("Olga", "official")).open("queue", browser.Width(1366, 768))}
	page.do(browser.See(".empty", "No reports here"))
	page.press("f")
	page.do(browser.Until(`document.activeElement.matches('dialog select[required]')`))
	page.do(browser.Until(`((list) => {
		list.value = '2'; // street lights
		return list.dispatchEvent(new Event('change', { bubbles: true }));
	})(document.activeElement)`))
	page.press(kb.Tab)
	page.do(browser.Until(`document.activeElement.matches('dialog input[maxlength="200"]')`))
	page.do(browser.Insert("Dark crossing"))
	page.do(browser.Fill("E-mail of the caller (optional)", "tpyo@mail.test"))
	page.do(browser.Enter())
	page.do(browser.See(".desk-detail h2", "Dark crossing"), browser.See(".desk-detail .meta strong", "Telephone"),
		browser.See(".desk-detail .meta span", "Entered by Olga"), browser.See(".desk-detail .meta span", "Address not confirmed yet"))
	mails.proofLink("tpyo@mail.test")

	page.do(browser.Click("summary", "Enter another address, or send the link again"),
		browser.Fill("E-mail of the caller (optional)", "budi@mail.test"), browser.Enter())
	_, link := mails.proofLink("budi@mail.test")
	page.do(browser.Go(c.here(link)), browser.See("h1", "Get mails about your report?"), browser.Click("button", "Send me mails"),
		browser.See("h1", "Your address is confirmed"))
	page.do(browser.Go(c.gateway.URL+"/queue?source=telephone"), browser.See(".task", "Dark crossing"))
	page.press("j", kb.Enter)
	page.do(browser.See(".desk-detail .meta span", "Gets mails"))
	page.checkFaults()
}
