package admin

import (
	"fmt"
	"net/http"

	"github.com/cityconnect/cityconnect/notification-service/internal/appearance"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// An Appearance is the operations on how the city looks and writes.
type Appearance struct{ Store *postgres.Appearances }

// Operations are those on the appearance.
func (h Appearance) Operations() openapi.Operations {
	return openapi.Operations{
		"readAppearance": {Handler: h.read, Timeout: service.DefaultTimeout},
		"setAppearance":  {Handler: h.set, Timeout: service.DefaultTimeout},
	}
}

// read handles GET /admin/appearance.
func (h Appearance) read(w http.ResponseWriter, r *http.Request) error {
	a, err := h.Store.Read(r.Context())
	return service.Answer(w, http.StatusOK, appearanceOf(a), err)
}

// set handles PUT /admin/appearance.
func (h Appearance) set(w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[notificationapi.NewAppearance](r)
	if err != nil {
		return err
	}
	a := appearance.Appearance{Revision: ifMatch(r), Colour: request.Colour, Words: make(map[string]appearance.Words)}
	for i, words := range request.Words {
		if _, err := wording.ParseLanguage(string(words.Language), fmt.Sprintf("/words/%d/language", i)); err != nil {
			return err
		}
		a.Words[string(words.Language)] = appearance.Words{Greeting: words.Greeting, Signature: words.Signature}
	}
	a, err = h.Store.Set(r.Context(), auth.Must(r).ID, a)
	return service.Answer(w, http.StatusOK, appearanceOf(a), err)
}

// appearanceOf has words in every language of mails, also where they are empty.
func appearanceOf(a appearance.Appearance) notificationapi.Appearance {
	out := notificationapi.Appearance{Revision: a.Revision, Colour: a.Colour, Tones: []notificationapi.Tone{}, Words: service.Each(wording.Names(), func(language string) notificationapi.MailWords {
		words := a.Words[language]
		return notificationapi.MailWords{Language: notificationapi.MailLanguage(language), Greeting: words.Greeting, Signature: words.Signature}
	})}
	if light, dark, ok := a.Tones(); ok {
		out.Tones = []notificationapi.Tone{notificationapi.Tone(light), notificationapi.Tone(dark)}
	}
	return out
}
