package email

import (
	"bytes"
	"cmp"
	"fmt"
	htmltemplate "html/template"
	"sync"

	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
)

// A linkPage is the page behind a link in a mail.
type linkPage struct {
	Language            wording.Language
	Heading, What       string
	Button, Name, Value string // of the button, and the field that it sends; no Button for none
}

// An Unsubscription is what a token ends.
type Unsubscription struct {
	Kind     string
	Language wording.Language
	Ended    bool // already
}

// UnsubscribePolicy is the Content-Security-Policy of UnsubscribePage and ProofPage: a form, and
// nothing else.
const UnsubscribePolicy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

var linkLayout = sync.OnceValue(func() *htmltemplate.Template {
	return htmltemplate.Must(htmltemplate.ParseFS(files, "layouts/link.html"))
})

// UnsubscribePage returns the page that says what ends, with the button that ends
// it, or that it has ended.
func UnsubscribePage(u Unsubscription) ([]byte, error) {
	var err error
	say := func(key string) (text string) {
		if err == nil {
			text, err = u.Language.Say(key, nil)
		}
		return text
	}
	view := linkPage{
		Language: u.Language, Heading: say("ending.heading"), What: say("ending." + u.Kind),
		Button: say("ending.button"), Name: "List-Unsubscribe", Value: "One-Click",
	}
	if u.Ended {
		view.Heading, view.Button = say("ended.heading"), ""
	}
	if err != nil {
		return nil, err
	}
	return view.lay()
}

// ProofPage returns the page that asks a caller to prove their address with a button, or
// says that it is proven. For a link that proves nothing c has no State.
func ProofPage(c Caller) ([]byte, error) {
	words := map[State]string{Unverified: "proving", Active: "proved"}[c.State]
	view := linkPage{Language: c.Language, Name: "prove", Value: "yes"}
	keys := map[string]*string{cmp.Or(words, "unproven") + ".heading": &view.Heading, cmp.Or(words, "unproven") + ".text": &view.What}
	if c.State == Unverified {
		keys["proving.button"] = &view.Button
	}
	for key, text := range keys {
		var err error
		if *text, err = c.Language.Say(key, nil); err != nil {
			return nil, err
		}
	}
	return view.lay()
}

func (view linkPage) lay() ([]byte, error) {
	var b bytes.Buffer
	if err := linkLayout().Execute(&b, view); err != nil {
		return nil, fmt.Errorf("lay out the page: %w", err)
	}
	return b.Bytes(), nil
}
