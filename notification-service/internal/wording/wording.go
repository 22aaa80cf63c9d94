// Package wording has the words that are used off the page, in every language that
// mails and pushes are written in.
//
// It promises that a notification which is withheld, because it is about an anonymous
// report, contributes no word of its report.
package wording

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Language is one that mails and pushes are written in.
type Language string

// The languages.
const (
	English    Language = "en"
	Indonesian Language = "id"
)

// Languages are all of them, with those that Use adds.
var Languages = []Language{English, Indonesian}

var (
	added = make(map[Language]Words) // by Use

	// fallback is the language of readers whose own one the city has no longer.
	fallback = English
)

// Preferred returns the first of the languages that a header Accept-Language prefers,
// in the order in which browsers write them; English without one.
func Preferred(header string) Language {
	return Language(service.PreferredLanguage(header, Names()...))
}

// Names are the languages as headers and settings write them.
func Names() []string {
	return service.Each(Languages, func(language Language) string { return string(language) })
}

// ParseLanguage returns the language of a request's field of that name.
func ParseLanguage(code, field string) (Language, error) {
	if !slices.Contains(Names(), code) {
		return "", fault.NewInvalid(field, "must be one of "+strings.Join(Names(), ", "))
	}
	return Language(code), nil
}

//go:embed words
var files embed.FS

// wordFiles are the files, as mail.language.json.
func wordFiles() fs.FS {
	sub, err := fs.Sub(files, "words")
	if err != nil {
		panic(err)
	}
	return sub
}

// words are read when the first are needed: the garbage collector would otherwise
// scan what most processes never use.
var words = sync.OnceValue(mustReadWords)

// mustReadWords returns the words of each language, ready to be filled.
func mustReadWords() map[Language]*template.Template {
	all := make(map[Language]*template.Template)
	for _, language := range Languages {
		entries := added[language]
		if entries == nil {
			entries = partsIn(language)[mailPart]
		}
		root := template.New(string(language)).Option("missingkey=error")
		for key, entry := range entries {
			template.Must(root.New(key).Parse(entry))
		}
		all[language] = root
	}
	return all
}

// lookup returns the words under key, or nil.
func (l Language) lookup(key string) *template.Template {
	said := words()[l]
	if said == nil {
		said = words()[fallback]
	}
	return said.Lookup(key)
}

// RightToLeft reports whether the language is written from right to left.
func (l Language) RightToLeft() bool {
	dir, err := l.Say("dir", nil)
	return err == nil && dir == "rtl"
}

// Say returns the words under key, filled with data.
func (l Language) Say(key string, data any) (string, error) {
	entry := l.lookup(key)
	if entry == nil {
		return "", fmt.Errorf("no words for %q in %q", key, l)
	}
	var b strings.Builder
	if err := entry.Execute(&b, data); err != nil {
		return "", fmt.Errorf("fill words for %q: %w", key, err)
	}
	return b.String(), nil
}

// An Item is a notification that is to be put into words.
type Item struct {
	Data     json.RawMessage // a notification.Data
	Withheld bool            // it is about an anonymous report
	Read     bool
}

// A Line is a notification in words.
type Line struct {
	Type   event.Key
	Title  string // of the report
	Status string
	Reply  bool   // the note is a reply, and the status is what it was
	Until  string // the last minute in which the reader may say whether it is fixed; empty if nobody asks
	Ask    string // whether it is, and until when; likewise
	Score  int64
	Note   string // of the official, may have several lines
	At     string
	URL    string // of the report, on the page
	Text   string
	// Private says that only the reporter and officials see the report.
	Private bool
}

// Line puts an item that is not withheld into words. URL is the page's address; times
// are those of zone.
func (l Language) Line(item Item, url string, zone *time.Location) (Line, error) {
	var data notification.Data
	if err := json.Unmarshal(item.Data, &data); err != nil {
		return Line{}, fmt.Errorf("read notification: %w", err)
	}
	line := Line{Type: data.Type, Title: data.ReportTitle, Note: data.Note, Reply: data.Reply, Private: data.Private, URL: url + "/reports/" + data.ReportID.String()}
	if data.Score != nil {
		line.Score = *data.Score
	}
	var err error
	if data.Status != "" {
		if line.Status, err = l.Say("status."+string(data.Status), nil); err != nil {
			return Line{}, err
		}
	}
	layout, err := l.Say("time", nil)
	if err != nil {
		return Line{}, err
	}
	line.At = data.HappenedAt.In(zone).Format(layout)
	if data.VerdictUntil != nil {
		line.Until = data.VerdictUntil.Add(-time.Second).In(zone).Format(layout)
		if line.Ask, err = l.Say("ask", line); err != nil {
			return Line{}, err
		}
	}
	key := "item." + string(data.Type)
	if l.lookup(key) == nil {
		key = "item.other"
	}
	line.Text, err = l.Say(key, line)
	return line, err
}

// Brief returns an item in a few words: the title of its report, and the news. For an
// item that is withheld it says only that there is news.
func (l Language) Brief(item Item) (title, text string, err error) {
	if item.Withheld {
		title, err = l.Say("anonymous.heading", nil)
		return title, "", err
	}
	line, err := l.Line(item, "", time.UTC)
	if err != nil {
		return "", "", err
	}
	text = line.Text
	if line.Ask != "" {
		ask, err := l.Say("ask.brief", nil)
		if err != nil {
			return "", "", err
		}
		text += ". " + ask
	}
	if line.Note != "" {
		text += "\n" + line.Note
	}
	return line.Title, text, nil
}
