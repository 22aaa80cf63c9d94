package mailtext_test

import (
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/mailtext"
)

// A mail is read as its reader sees it, and as far as it can be read.
func TestRead(t *testing.T) {
	t.Parallel()
	const header = "Subject: =?utf-8?q?Pothole_=E2=80=94_closed?=\nMessage-ID: <a@b>\n"
	const parts = header + "Content-Type: multipart/alternative; boundary=b\n\n" +
		"--b\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nthe city=E2=80=99s\n" +
		"--b\nContent-Type: text/html; charset=utf-8\n\n<p>the city\n--b--\n"
	read := mailtext.Content{Subject: "Pothole — closed", MessageID: "<a@b>", Text: "the city’s", HTML: "<p>the city"}
	onlyText := read
	onlyText.HTML = ""
	for _, tt := range []struct {
		name, mail string
		want       mailtext.Content
		fails      bool
	}{
		{"two forms", parts, read, false},
		{"line ends with CR", strings.ReplaceAll(parts, "\n", "\r\n"), read, false},
		{"text alone", header + "\nthe city’s", onlyText, false},
		{"cut off", strings.TrimSuffix(parts, "\n--b--\n"), read, true},
		{"not a mail", "\x00", mailtext.Content{}, true},
	} {
		got, err := mailtext.Read([]byte(tt.mail))
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %+v, error %v; want %+v", tt.name, got, err, tt.want)
		}
	}
}
