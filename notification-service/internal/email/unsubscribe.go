package email

import (
	"bytes"
	"fmt"
	htmltemplate "html/template"
	"sync"

	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
)

// An Unsubscription is what a token ends.
type Unsubscription struct {
	Kind     string
	Language wording.Language
	Ended    bool // already
}

// UnsubscribePolicy is the Content-Security-Policy of UnsubscribePage: a form, and
// nothing else.
const UnsubscribePolicy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

var unsubscribeLayout = sync.OnceValue(func() *htmltemplate.Template {
	return htmltemplate.Must(htmltemplate.ParseFS(files, "layouts/unsubscribe.html"))
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
	view := struct {
		Language              wording.Language
		Heading, What, Button string
		Ended                 bool
	}{Language: u.Language, Heading: say("ending.heading"), What: say("ending." + u.Kind), Button: say("ending.button"), Ended: u.Ended}
	if u.Ended {
		view.Heading = say("ended.heading")
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := unsubscribeLayout().Execute(&b, view); err != nil {
		return nil, fmt.Errorf("lay out the page: %w", err)
	}
	return b.Bytes(), nil
}
