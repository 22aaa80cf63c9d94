package email

import (
	"embed"
	"fmt"
	htmltemplate "html/template"
	"strconv"
	"strings"
	"sync"
	texttemplate "text/template"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/appearance"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/event"
)

// files has one layout for all mails, as text and as HTML. Both parts are filled from
// the same values, so that each has what the other has, links included.
//
//go:embed layouts
var files embed.FS

// The layouts are read when the first mail is written: the garbage collector would
// otherwise scan what most processes never use.
var (
	textLayout = sync.OnceValue(func() *texttemplate.Template {
		return texttemplate.Must(texttemplate.ParseFS(files, "layouts/mail.txt"))
	})
	htmlLayout = sync.OnceValue(func() *htmltemplate.Template {
		return htmltemplate.Must(htmltemplate.ParseFS(files, "layouts/mail.html"))
	})
)

// mailText is what a mail is made of.
type mailText struct {
	Language  wording.Language
	PublicURL string
	City      string // who writes
	Links     config.CityLinks
	Zone      *time.Location

	Appearance appearance.Appearance // of the city

	Code          string
	Items         []wording.Line
	Total         int64 // of a digest, including those not written out
	WithheldItems int64 // of it
	Unsubscribe   string
	Endpoint      string  // that is disabled, or about to be
	Reason        string  // for which it is
	Hours         int     // in how many it is about to be
	Called        *Called // nil unless it is for a caller
	Proof         string  // the link that proves their address
	Category      string  // of their report, or ""
	Day           string  // on which an official entered the address
	Shown         bool    // whether everybody sees their report
	Number        string  // of the report that a firm is to repair
	Job           string  // the link that opens it; empty once that has ended
}

// callerNews is the layout of news about the report of a caller. They have no account to
// read it with, and chose mails about this report alone: so it says the status, and leads to
// a report that everybody sees. It has neither title, place nor note.
const callerNews = "caller"

// layoutOf returns whose words the mail of a kind has.
func layoutOf(kind string, called *Called) string {
	if kind == Anonymous && called != nil {
		return callerNews
	}
	return kind
}

// add adds a notification. One that is withheld is counted, and nothing of it
// gets further, except for callers.
func (t *mailText) add(item wording.Item) error {
	if item.Withheld && t.Called == nil {
		return nil
	}
	line, err := t.Language.Line(item, t.PublicURL, t.Zone)
	if item.Withheld {
		t.Shown = t.Called.Shown && !line.Private
		line = wording.Line{Status: line.Status, Reply: line.Reply, URL: line.URL}
	}
	t.Items = append(t.Items, line)
	return err
}

// addProof adds the link, and what a caller without a proven address may read of the report.
func (t *mailText) addProof(token string) error {
	layout, err := t.Language.Say("day", nil)
	t.Proof, t.Category, t.Day = t.PublicURL+"/p/"+token, t.Called.Category, t.Called.EnteredAt.In(t.Zone).Format(layout)
	return err
}

// addFirm adds what a firm is to repair and where, with the photos that everybody sees.
func (t *mailText) addFirm(f *event.FirmNotice, token string) error {
	layout, err := t.Language.Say("day", nil)
	if err != nil {
		return err
	}
	last, err := time.Parse(time.DateOnly, f.EndsOn)
	if err != nil {
		return fmt.Errorf("read the last day of a link: %w", err)
	}
	t.Category, t.Number, t.Day = f.CategoryName, f.Number, last.Format(layout)
	if token != "" {
		t.Job = t.PublicURL + "/j/" + token
	}
	what := wording.Line{Title: f.ReportTitle, Text: f.Address, Note: f.Text, URL: t.Job}
	if f.Latitude != nil && f.Longitude != nil {
		what.URL = fmt.Sprintf("https://www.openstreetmap.org/?mlat=%[1]f&mlon=%[2]f#map=19/%[1]f/%[2]f", *f.Latitude, *f.Longitude)
	}
	t.Items = append(t.Items, what)
	for i, id := range f.Photos {
		title, err := t.Language.Say("item.photo", i+1)
		if err != nil {
			return err
		}
		t.Items = append(t.Items, wording.Line{Title: title, URL: t.PublicURL + "/photos/" + id.String() + "/2048.jpg"})
	}
	return nil
}

// addNotice adds the notice to officials or operators: a line for each category, or
// the endpoint.
func (t *mailText) addNotice(n *Notice) error {
	t.Endpoint, t.Reason, t.Hours = n.Endpoint, n.Reason, n.Hours
	for _, c := range n.Overdue {
		t.Total += c.Count
		text, err := t.Language.Say("item.overdue", c)
		if err != nil {
			return err
		}
		t.Items = append(t.Items, wording.Line{
			Title: c.Category, Text: text, URL: t.PublicURL + "/queue?overdue=1&order=due&status=all&category=" + strconv.Itoa(int(c.CategoryID)),
		})
	}
	return nil
}

// A link is an address with a label.
type link struct{ Label, URL string }

// A page is a mail that is ready to be laid out.
type page struct {
	Language wording.Language
	City     string // who writes, or ""
	appearance.Words
	Light, Dark appearance.Tone
	Subject     string
	Heading     string
	Intro       string
	Code        string
	Items       []wording.Line
	More        string // how many more there are, or ""
	Button      *link
	Footer      string
	Unsubscribe *link
	Links       []link // what the law asks for
}

// The colours of a city that has none.
var (
	light = appearance.Tone{Accent: "#0b6b57", OnAccent: "#ffffff"}
	dark  = appearance.Tone{Accent: "#3fb79b", OnAccent: "#06231c"}
)

// written is a mail as text and as HTML.
type written struct{ Subject, Text, HTML string }

// write writes the mail of a kind in the reader's language.
func write(kind string, t *mailText) (written, error) {
	p := page{Language: t.Language, City: t.City, Code: t.Code, Items: t.Items, Light: light, Dark: dark}
	if tone, other, ok := t.Appearance.Tones(); ok {
		p.Light, p.Dark = tone, other
	}
	if kind != Overdue && kind != EndpointDisabled && kind != EndpointFailing && kind != TargetDiffers { // which go to the city itself
		p.Words = t.Appearance.Words[string(t.Language)]
	}
	if kind == callerNews { // which is all in its subject
		p.Items = nil
	}
	of := struct {
		*mailText
		Item     wording.Line // the only one of a mail about one notification
		Left     int64        // of a digest, how many are not written out
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
			text, err = t.Language.Say(key, of)
		}
		return text
	}
	p.Subject, p.Heading, p.Intro = say(kind+".subject"), say(kind+".heading"), say(kind+".intro")
	button, url, footer := "report", of.Item.URL, "notification"
	switch kind {
	case Code:
		url, footer = "", "code"
	case Proof:
		button, url, footer = "proof", t.Proof, "proof"
	case FirmAsked, FirmReminded:
		button, url, footer = "job", t.Job, "firm"
	case FirmEnded:
		url, footer = "", "firm"
	case callerNews:
		if footer = "caller"; !t.Shown {
			url = ""
		}
	case Overdue:
		button, url, footer = "queue", t.PublicURL+"/queue?overdue=1&order=due&status=all", "notice"
	case EndpointDisabled, EndpointFailing:
		button, url, footer = "webhooks", t.PublicURL+"/ops/webhooks", "notice"
	case TargetDiffers:
		button, url, footer = "back_office", t.PublicURL+"/ops/back-office", "notice"
	case Anonymous, Digest:
		button, url, footer = "mine", t.PublicURL+"/mine", kind
	}
	p.Footer = say("footer." + footer)
	if url != "" {
		p.Button = &link{say("button." + button), url}
	}
	if kind == Digest && (of.Left > 0 || of.Withheld > 0) {
		p.More = say("digest.more")
	}
	if t.Links.Privacy != "" {
		p.Links = append(p.Links, link{say("link.privacy"), t.Links.Privacy})
	}
	if t.Links.Imprint != "" {
		p.Links = append(p.Links, link{say("link.imprint"), t.Links.Imprint})
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
