package email

import (
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/appearance"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
)

// Mails to residents have the city's words in their language and its colour, as text and
// not as markup; notices to the city itself have no greeting.
func TestMailsHaveTheCitysWords(t *testing.T) {
	t.Parallel()
	city := appearance.Appearance{Colour: "#8a1538", Words: map[string]appearance.Words{
		"id": {Greeting: "Warga <b>Bogor</b>,", Signature: "Salam,\nDinas Kominfo & kawan"},
	}}
	mail := func(kind string, language wording.Language, a appearance.Appearance) written {
		t.Helper()
		w, err := write(kind, &mailText{Language: language, City: "Kota Bogor", Zone: time.UTC, Appearance: a, Code: "123456"})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := mail(Code, wording.Indonesian, city)
	for _, want := range []string{"<p>Warga &lt;b&gt;Bogor&lt;/b&gt;,</p>", "Salam,\nDinas Kominfo &amp; kawan", "background: #8a1538; color: #ffffff"} {
		if !strings.Contains(w.HTML, want) {
			t.Errorf("the HTML lacks %q:\n%s", want, w.HTML)
		}
	}
	if !strings.Contains(w.Text, "\nWarga <b>Bogor</b>,\n") || !strings.Contains(w.Text, "Salam,\nDinas Kominfo & kawan\n\n-- \nKota Bogor\n") {
		t.Errorf("the text is\n%s", w.Text)
	}
	for name, w := range map[string]written{"another language": mail(Code, wording.English, city), "a notice": mail(Overdue, wording.Indonesian, city)} {
		if strings.Contains(w.Text, "Warga") || strings.Contains(w.Text, "Salam") {
			t.Errorf("%s has the words:\n%s", name, w.Text)
		}
	}
	if w := mail(Code, wording.Indonesian, appearance.Appearance{}); !strings.Contains(w.HTML, "#0b6b57") || strings.Contains(w.HTML, "<p></p>") {
		t.Errorf("a mail without an appearance:\n%s", w.HTML)
	}
}
