// Package firefox opens CityConnect's page in a headless Firefox and does in it what
// people do, as package browser does in Chromium. It speaks WebDriver BiDi, which
// Firefox has built in: neither a driver nor Node.js is needed.
package firefox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// A Tab shows the page in a Firefox of its own.
type Tab struct {
	conn    *connection
	context string // what the browser calls the tab
	cmd     *exec.Cmd
	cancel  context.CancelFunc
	profile string
}

// Start starts a Firefox whose reader prefers a language, such as id, with one tab of
// a width and height in CSS pixels. It ends with ctx or Close.
func Start(ctx context.Context, language string, width, height int) (*Tab, error) {
	profile, err := os.MkdirTemp("", "firefox")
	if err != nil {
		return nil, err
	}
	t := &Tab{profile: profile}
	if err := t.start(ctx, language); err != nil {
		t.Close()
		return nil, fmt.Errorf("start Firefox (Debian's package firefox-esr, or another one in the PATH): %w", err)
	}
	if err := t.open(ctx, width, height); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// preferences are what a reader may set in a profile.
const preferences = `user_pref("intl.accept_languages", %q);
user_pref("ui.useOverlayScrollbars", 1); // as phones have them
user_pref("ui.prefersReducedMotion", 1); // pictures show what has come to rest
user_pref("webgl.disabled", true); // headless Firefox has it on some machines only
`

func (t *Tab) start(ctx context.Context, language string) error {
	path, err := exec.LookPath("firefox-esr")
	if err != nil {
		if path, err = exec.LookPath("firefox"); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(t.profile, "user.js"), fmt.Appendf(nil, preferences, language), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-remote", "--profile", t.profile, "--remote-debugging-port", "0", "about:blank")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // with the processes of its pages
		Pdeathsig: syscall.SIGKILL, // it ends with the test, however that ends
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, in, err := os.Pipe()
	if err != nil {
		cancel()
		return err
	}
	cmd.Stderr = in
	err = cmd.Start()
	_ = in.Close()
	if err != nil {
		cancel()
		_ = out.Close()
		return err
	}
	t.cmd, t.cancel = cmd, cancel
	address, err := listening(out)
	if err != nil {
		_ = out.Close()
		return err
	}
	go func() { // what it goes on to print is of no use, but must go somewhere
		_, _ = io.Copy(io.Discard, out)
		_ = out.Close()
	}()
	t.conn, err = dial(ctx, address)
	return err
}

// listening returns the address that Firefox prints once it can be connected to.
func listening(output io.Reader) (string, error) {
	var printed strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if _, address, found := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); found {
			return address, nil
		}
		fmt.Fprintln(&printed, lines.Text())
	}
	return "", errors.New("it ended; it printed:\n" + printed.String())
}

// open opens the tab, and reports from it all that goes wrong in its pages.
func (t *Tab) open(ctx context.Context, width, height int) error {
	var created struct{ Context string }
	if err := t.conn.call(ctx, "browsingContext.create", object{"type": "tab"}, &created); err != nil {
		return err
	}
	t.context = created.Context
	if err := t.conn.call(ctx, "session.subscribe", object{"events": []string{"log.entryAdded", "script.message"}}, nil); err != nil {
		return err
	}
	if err := t.conn.call(ctx, "script.addPreloadScript", object{
		"functionDeclaration": "(report) => { const faults = { push: report };" + browser.Listeners + "}",
		"arguments":           []object{{"type": "channel", "value": object{"channel": "faults"}}},
	}, nil); err != nil {
		return err
	}
	return t.conn.call(ctx, "browsingContext.setViewport", object{
		"context": t.context, "viewport": object{"width": width, "height": height}, "devicePixelRatio": 1,
	}, nil)
}

// Close ends the browser and removes what it has kept.
func (t *Tab) Close() {
	if t.conn != nil {
		_ = t.conn.socket.CloseNow()
	}
	if t.cmd != nil {
		t.cancel()
		_ = t.cmd.Wait() // it was killed
	}
	_ = os.RemoveAll(t.profile)
}
