package push

import "strings"

// A name is what a user agent is called that has mark in its header.
type name struct{ mark, name string }

// browsers are looked for in this order: most claim to be those behind them, too.
var browsers = []name{
	{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
	{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
}

var systems = []name{
	{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"CrOS", "ChromeOS"},
	{"Mac OS X", "macOS"}, {"Linux", "Linux"},
}

// Label returns what the owner of a device knows it by, from the header
// User-Agent: such as "Firefox, Android". No version is in it, so that it tells
// nobody apart.
func Label(userAgent string) string {
	find := func(names []name, otherwise string) string {
		for _, n := range names {
			if strings.Contains(userAgent, n.mark) {
				return n.name
			}
		}
		return otherwise
	}
	label := find(browsers, "Browser")
	if system := find(systems, ""); system != "" {
		label += ", " + system
	}
	return label
}
