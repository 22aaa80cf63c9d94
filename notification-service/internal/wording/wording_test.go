package wording

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
)

func TestPreferred(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]Language{
		"": English, "id": Indonesian, "in-ID,in;q=0.9,en;q=0.8": Indonesian, "ID-id": Indonesian, "fr, id;q=0.5": Indonesian,
		"en-US,en;q=0.9,id;q=0.8": English, "fr": English, "*": English,
	} {
		if got := Preferred(header); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// Both languages have the same words.
func TestWordsAreComplete(t *testing.T) {
	t.Parallel()
	for _, entry := range words()[English].Templates() {
		if words()[Indonesian].Lookup(entry.Name()) == nil && entry.Name() != string(English) {
			t.Errorf("no %q in Indonesian", entry.Name())
		}
	}
	if a, b := len(words()[English].Templates()), len(words()[Indonesian].Templates()); a != b {
		t.Errorf("%d words in English, %d in Indonesian", a, b)
	}
}

// Each kind of notification that mails and pushes may be about has words of its own,
// unless it is known that "There is news" is enough for it.
func TestKindsHaveWords(t *testing.T) {
	t.Parallel()
	without := []event.Key{
		event.ReportCreatedKey, event.ReportOverdueKey, event.DisputedKey, event.AnsweredKey, event.ExpiredKey, // officials read them, who get no such mails
		event.ModeratedKey, event.CommentedKey, // never in a mail
		event.PhotoReadyKey, event.PhotoRefusedKey, // in digests alone
	}
	for _, key := range event.Keys() {
		for _, language := range Languages {
			if words()[language].Lookup("item."+string(key)) == nil && !slices.Contains(without, key) {
				t.Errorf("words/mail.%s.json: no \"item.%s\"", language, key)
			}
		}
	}
}

// A resolution asks the reporter whether it is fixed, in each language, and a follower not.
func TestResolutionAsks(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 12, 12, 0, 0, 0, 0, time.UTC)
	for language, question := range map[Language]string{English: "Is it fixed?", Indonesian: "Apakah sudah beres?"} {
		for _, asked := range []*time.Time{&until, nil} {
			data, err := json.Marshal(notification.Data{Type: event.StatusUpdatedKey, Status: event.Resolved, VerdictUntil: asked})
			if err != nil {
				t.Fatal(err)
			}
			line, err := language.Line(Item{Data: data}, "", time.UTC)
			_, brief, briefErr := language.Brief(Item{Data: data})
			if err != nil || strings.Contains(line.Ask, question) != (asked != nil) || strings.HasSuffix(line.Ask, "11 Dec 2026, 23:59.") != (asked != nil && language == English) {
				t.Errorf("%s: %+v, error %v", language, line, err)
			}
			if briefErr != nil || strings.HasSuffix(brief, question) != (asked != nil) {
				t.Errorf("%s: in a push it is %q, error %v", language, brief, briefErr)
			}
		}
	}
}
