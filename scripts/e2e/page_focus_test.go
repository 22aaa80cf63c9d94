package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// A reader who goes through a report's steps by keyboard sees what has the focus, in
// a phone's window, in a phone's that lies on its side, and in one that is zoomed:
// neither the header nor the bar at the lower edge covers it.
func TestPageFocusIsInSight(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	page := c.reader(c.signIn("Ana", "resident")).open("new")
	for _, size := range [][2]int{{360, 740}, {360, 437}, {740, 360}} {
		page.do(browser.Width(size[0], size[1]))
		for step := 1; step <= 4; step++ {
			page.do(browser.Go(fmt.Sprintf("%s/new?step=%d", c.gateway.URL, step)), live)
			page.checkFocusInSight(fmt.Sprintf("step %d, %d × %d px", step, size[0], size[1]))
		}
	}
	page.checkFaults()
}

// checkFocusInSight presses Tab until the focus is back at the beginning, and
// reports each place at which what has it cannot be seen.
func (p tab) checkFocusInSight(name string) {
	p.t.Helper()
	const most = 120
	var covered []string
	for range most {
		p.do(browser.Press(kb.Tab))
		// At the corners and in the middle, of elements no higher than a field.
		seen, err := browser.Ask[string](p.Tab, `new Promise((seen) => requestAnimationFrame(() => {
			const focused = document.activeElement;
			if (focused === document.body) return seen('end');
			// A field that lies unseen in its label is shown by it.
			const shown = focused.closest('.chip, .option, .check, .file') ?? focused;
			const { top, left, right, bottom, height } = shown.getBoundingClientRect();
			const inner = [[left + 4, top + 4], [right - 4, bottom - 4], [(left + right) / 2, (top + bottom) / 2]];
			const visible = inner.filter(([x, y]) => {
				const at = document.elementFromPoint(x, y);
				return at && (shown.contains(at) || at.contains(shown));
			}).length;
			seen(visible === 3 || (height > 120 && visible > 0) ? '' : shown.outerHTML.slice(0, 120) + ' at ' + Math.round(top) + ' to ' + Math.round(bottom));
		}))`)
		if err != nil {
			p.t.Fatal(err)
		}
		if seen == "end" {
			break
		}
		if seen != "" {
			covered = append(covered, seen)
		}
	}
	if len(covered) > 0 {
		p.t.Errorf("%s, covered:\n%s", name, strings.Join(covered, "\n"))
	}
}
