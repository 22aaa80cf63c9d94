package email

import (
	"embed"
	"encoding/json"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	texttemplate "text/template"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
)

// files has one layout for all mails, as text and as HTML, and the words of each
// language. Both parts are filled from the same values, so that each has what
// the other has, links included.
//
//go:embed layouts words
var files embed.FS

// The layouts and the words are read when the first mail is written: the garbage
// collector would look again and again at what most processes never use.
var (
	textLayout = sync.OnceValue(func() *texttemplate.Template {
		return texttemplate.Must(texttemplate.ParseFS(files, "layouts/mail.txt"))
	})
	htmlLayout = sync.OnceValue(func() *htmltemplate.Template {
		return htmltemplate.Must(htmltemplate.ParseFS(files, "layouts/mail.html"))
	})
	words = sync.OnceValue(mustReadWords)
)

// mustReadWords returns the words of each language, ready to be filled.
func mustReadWords() map[Language]*texttemplate.Template {
	all := make(map[Language]*texttemplate.Template)
	for _, language := range []Language{English, Indonesian} {
		data, err := fs.ReadFile(files, path.Join("words", string(language)+".json"))
		if err != nil {
			panic(err)
		}
		var entries map[string]string
		if err := json.Unmarshal(data, &entries); err != nil {
			panic(fmt.Sprintf("email: words of %s: %v", language, err))
		}
		root := texttemplate.New(string(language)).Option("missingkey=error")
		for key, entry := range entries {
			texttemplate.Must(root.New(key).Parse(entry))
		}
		all[language] = root
	}
	return all
}

// mailText is what a mail is made of.
type mailText struct {
	Language  Language
	PublicURL string
	City      string // who writes
	Zone      *time.Location

	Code          string
	Items         []line
	Total         int64 // of a digest, with what is not written out
	WithheldItems int64 // of it
	Unsubscribe   string
	Endpoint      string // that is disabled
	Reason        string // for which it is
}

// A line tells of one notification. Its texts are in the reader's language.
type line struct {
	Type   event.Key
	Title  string // of the report
	Status string
	Score  int64
	Note   string // of the official, may have several lines
	At     string
	URL    string // of the report, on the page
	Text   string
}

// add adds a notification. One that is withheld is counted, and nothing of it
// gets further.
func (t *mailText) add(item Item) error {
	if item.Withheld {
		return nil
	}
	var data notification.Data
	if err := json.Unmarshal(item.Data, &data); err != nil {
		return fmt.Errorf("read notification: %w", err)
	}
	l := line{Type: data.Type, Title: data.ReportTitle, Note: data.Note, URL: t.PublicURL + "/reports/" + data.ReportID.String()}
	if data.Score != nil {
		l.Score = *data.Score
	}
	var err error
	if data.Status != "" {
		if l.Status, err = t.say("status."+string(data.Status), nil); err != nil {
			return err
		}
	}
	layout, err := t.say("time", nil)
	if err != nil {
		return err
	}
	l.At = data.HappenedAt.In(t.Zone).Format(layout)
	key := "item." + string(data.Type)
	if words()[t.Language].Lookup(key) == nil {
		key = "item.other"
	}
	if l.Text, err = t.say(key, l); err != nil {
		return err
	}
	t.Items = append(t.Items, l)
	return nil
}

// Brief returns what a mail about one notification says, in a few words: of which
// report, and what is new. Of one that is withheld it says that there is news.
func Brief(language Language, item Item) (title, text string, err error) {
	t := mailText{Language: language, Zone: time.UTC}
	if item.Withheld {
		title, err = t.say(Anonymous+".heading", nil)
		return title, "", err
	}
	if err := t.add(item); err != nil {
		return "", "", err
	}
	text = t.Items[0].Text
	if note := t.Items[0].Note; note != "" {
		text += "\n" + note
	}
	return t.Items[0].Title, text, nil
}

// addNotice adds what officials or operators are told: a line for each category,
// or the endpoint.
func (t *mailText) addNotice(n *Notice) error {
	t.Endpoint, t.Reason = n.Endpoint, n.Reason
	for _, c := range n.Overdue {
		t.Total += c.Count
		text, err := t.say("item.overdue", c)
		if err != nil {
			return err
		}
		t.Items = append(t.Items, line{
			Title: c.Category, Text: text, URL: t.PublicURL + "/queue?overdue=1&order=due&status=all&category=" + strconv.Itoa(int(c.CategoryID)),
		})
	}
	return nil
}

// say returns the words under key, filled with data.
func (t *mailText) say(key string, data any) (string, error) {
	entry := words()[t.Language].Lookup(key)
	if entry == nil {
		return "", fmt.Errorf("no words for %q in %q", key, t.Language)
	}
	var b strings.Builder
	if err := entry.Execute(&b, data); err != nil {
		return "", fmt.Errorf("fill words for %q: %w", key, err)
	}
	return b.String(), nil
}

// A link is an address with what it leads to.
type link struct{ Label, URL string }

// A page is a mail that is ready to be laid out.
type page struct {
	Language    Language
	City        string // who writes, or ""
	Subject     string
	Heading     string
	Intro       string
	Code        string
	Items       []line
	More        string // how many more there are, or ""
	Button      *link
	Footer      string
	Unsubscribe *link
}

// written is a mail as text and as HTML.
type written struct{ Subject, Text, HTML string }

// write writes the mail of a kind in the reader's language.
func write(kind string, t *mailText) (written, error) {
	p := page{Language: t.Language, City: t.City, Code: t.Code, Items: t.Items}
	of := struct {
		*mailText
		Item     line  // the only one of a mail about one notification
		Left     int64 // of a digest, what is not written out
		Minutes  int
		Withheld int64
	}{mailText: t, Minutes: int(CodeLifetime.Minutes()), Withheld: t.WithheldItems}
	if len(t.Items) > 0 {
		of.Item = t.Items[0]
	}
	of.Left = t.Total - t.WithheldItems - int64(len(t.Items))
	var err error
	say := func(key string) (text string) {
		if err == nil {
			text, err = t.say(key, of)
		}
		return text
	}
	p.Subject, p.Heading, p.Intro = say(kind+".subject"), say(kind+".heading"), say(kind+".intro")
	switch kind {
	case Code:
		p.Footer = say("footer.code")
	case Overdue:
		p.Button = &link{say("button.queue"), t.PublicURL + "/queue?overdue=1&order=due&status=all"}
		p.Footer = say("footer.notice")
	case EndpointDisabled:
		p.Button = &link{say("button.webhooks"), t.PublicURL + "/ops/webhooks"}
		p.Footer = say("footer.notice")
	case Anonymous, Digest:
		p.Button = &link{say("button.mine"), t.PublicURL + "/mine"}
		p.Footer = say("footer." + kind)
	default:
		p.Button = &link{say("button.report"), of.Item.URL}
		p.Footer = say("footer.notification")
	}
	if kind == Digest && (of.Left > 0 || of.Withheld > 0) {
		p.More = say("digest.more")
	}
	if t.Unsubscribe != "" {
		p.Unsubscribe = &link{say("unsubscribe"), t.Unsubscribe}
	}
	if err != nil {
		return written{}, err
	}
	var text, html strings.Builder
	if err := textLayout().Execute(&text, p); err != nil {
		return written{}, fmt.Errorf("lay out the text: %w", err)
	}
	if err := htmlLayout().Execute(&html, p); err != nil {
		return written{}, fmt.Errorf("lay out the HTML: %w", err)
	}
	return written{p.Subject, text.String(), html.String()}, nil
}
