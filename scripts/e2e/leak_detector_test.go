package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// A leakDetector knows what would give a person away: unique strings, in every form in
// which they could travel.
type leakDetector struct {
	t     *testing.T
	forms map[string][]byte // by a name for messages
	calls int
}

func newLeakDetector(t *testing.T, secrets ...string) *leakDetector {
	d := &leakDetector{t: t, forms: make(map[string][]byte)}
	for _, s := range secrets {
		d.add(s+" as it stands", s)
		d.add(s+" in upper case", strings.ToUpper(s))
		d.add(s+" in lower case", strings.ToLower(s))
		d.add(s+" in hex", hex.EncodeToString([]byte(s)))
		d.add(s+" in upper hex", strings.ToUpper(hex.EncodeToString([]byte(s))))
		d.add(s+" escaped for a URL", url.QueryEscape(s))
		d.add(s+" escaped for a path", url.PathEscape(s))
		for offset := range 3 {
			d.add(s+" in base64", inner(base64.StdEncoding, s, offset))
			d.add(s+" in base64 for URLs", inner(base64.URLEncoding, s, offset))
		}
		reversed := []byte(s)
		slices.Reverse(reversed)
		d.add(s+" backwards", string(reversed))
	}
	return d
}

func (d *leakDetector) add(name, form string) {
	d.forms[name+" ("+form+")"] = []byte(form)
}

// inner returns those characters of s's base64 that stay the same whatever
// stands around it, if s begins offset bytes into a group of three.
func inner(enc *base64.Encoding, s string, offset int) string {
	padded := enc.EncodeToString([]byte(strings.Repeat("\x00", offset) + s))
	from := []int{0, 2, 3}[offset] // characters that also hold what stands before
	to := (offset + len(s)) / 3 * 4
	return padded[from:to]
}

// found returns the forms that occur in data.
func (d *leakDetector) found(data []byte) []string {
	var names []string
	for name, form := range d.forms {
		if bytes.Contains(data, form) {
			names = append(names, name)
		}
	}
	return names
}

// check fails the test if data gives the person away.
func (d *leakDetector) check(where string, data []byte) {
	d.t.Helper()
	d.calls++
	for _, name := range d.found(data) {
		d.t.Errorf("%s shows %s", where, name)
	}
}

// A detector that finds nothing would let every leak pass.
func TestLeakDetectorFindsEveryForm(t *testing.T) {
	t.Parallel()
	const secret = "Kanari-7f3a9c51"
	d := newLeakDetector(t, secret)
	for _, before := range []string{"", "u", "us", "user:"} {
		text := before + secret + "!"
		for how, data := range map[string]string{
			"plain": text, "hex": hex.EncodeToString([]byte(text)), "query": url.QueryEscape(text),
			"base64": base64.StdEncoding.EncodeToString([]byte(text)), "base64url": base64.RawURLEncoding.EncodeToString([]byte(text)),
		} {
			if len(d.found([]byte("before "+data+" after"))) == 0 {
				t.Errorf("%q in %s is not found", text, how)
			}
		}
	}
	if found := d.found([]byte("Kanari-7f3a9c5")); found != nil {
		t.Errorf("found %q in something else", found)
	}
}
