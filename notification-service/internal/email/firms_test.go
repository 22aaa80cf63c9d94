package email_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notifier"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
)

const link = "ccj_ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// mailFirm tells of a mail to a firm, as report-service does, twice.
func (w *world) mailFirm(kind event.FirmNoticeKind, change func(*event.FirmNotice)) *event.FirmNotice {
	w.t.Helper()
	job := uuid.New()
	m := &event.FirmNotice{
		Subject: subject(uuid.New(), "", "Dark lamp", false), JobID: job, Kind: kind, Number: "ABCD-EFGH", CategoryName: "Street lights", Address: "Jl. Braga 1",
		Text: "The third lamp.", EndsOn: "2026-12-14", Photos: []uuid.UUID{uuid.New()}, Mailbox: w.keys.SealAddress(job, "office@lampu.example"),
	}
	m.ReporterID, m.Latitude, m.Longitude = "", new(-6.9), new(107.6)
	if kind != event.FirmEnded {
		m.Token = w.keys.SealToken(job, link)
	}
	if change != nil {
		change(m)
	}
	batch := []consumer.Message{{ID: uuid.NewString(), Event: m}}
	for want := range 2 { // the broker delivers it twice
		seen, err := notifier.FirmGroup(w.pool, w.ring).Effect.Apply(w.t.Context(), notifier.FirmsQueue, batch)
		if err != nil || seen != want {
			w.t.Fatalf("%d seen, error %v; want %d", seen, err, want)
		}
	}
	return m
}

// A firm gets what and where, map, photos and link, once and in the language of the city's
// own mails; nothing in the database has the address or the link in clear.
func TestMailsToFirms(t *testing.T) {
	t.Parallel()
	for language, says := range map[string]map[event.FirmNoticeKind]string{
		"en": {event.FirmAsked: "Please repair", event.FirmReminded: "Is it done?", event.FirmEnded: "The link has ended"},
		"id": {event.FirmAsked: "Mohon diperbaiki", event.FirmReminded: "Apakah sudah selesai?", event.FirmEnded: "Tautan sudah berakhir"},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.config.NoticesLanguage = language
			for kind := range says {
				w.mailFirm(kind, nil)
				if n := w.number(`select count(*) from deliveries where convert_from(body, 'UTF8') ~ $1 or lane ~ 'lampu'`, "lampu.example|ccj_"); n > 0 {
					t.Errorf("%d deliveries name the firm's host or link", n)
				}
			}
			w.start()
			mails := w.server.waitFor(3)
			for kind, heading := range says {
				i := slices.IndexFunc(mails, func(m received) bool { _, text, _ := m.read(t); return strings.Contains(text, heading) })
				if i < 0 {
					t.Errorf("no mail says %q", heading)
					continue
				}
				_, text, html := mails[i].read(t)
				for _, part := range []string{text, html} {
					for _, want := range []string{"Dark lamp", "Street lights", "ABCD-EFGH", "Jl. Braga 1", "The third lamp.", "mlat=-6.9", "/2048.jpg"} {
						if !strings.Contains(part, want) {
							t.Errorf("%s: no %q in\n%s", kind, want, part)
						}
					}
					if strings.Contains(part, "https://city.example.org/j/"+link) != (kind != event.FirmEnded) {
						t.Errorf("%s: the link in\n%s", kind, part)
					}
				}
				if mails[i].to != "office@lampu.example" || bytes.Contains(mails[i].data, []byte("\nList-Unsubscribe")) {
					t.Errorf("%s: to %s\n%s", kind, mails[i].to, mails[i].data)
				}
			}
		})
	}
}

// No mail to a firm is about a hidden report; one whose words were redacted since has the
// words of now; and one that only the city sees has its category in their place.
func TestMailsToFirmsAreModerated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.NoticesLanguage = "en"
	hidden := w.mailFirm(event.FirmAsked, func(m *event.FirmNotice) { m.ReportTitle = "Canary hidden" })
	redacted := w.mailFirm(event.FirmAsked, func(m *event.FirmNotice) { m.ReportTitle = "Canary redacted" })
	private := w.mailFirm(event.FirmAsked, func(m *event.FirmNotice) {
		m.Private, m.ReportTitle, m.Address, m.Photos = true, m.CategoryName, "", nil
	})
	w.exec(`insert into moderated_reports (report_id, version, hidden, title, redacted_notes) values ($1, 2, true, 'x', '{}'), ($2, 2, false, 'Lamp', '{}'), ($3, 2, false, 'Canary private', '{}')`,
		hidden.ReportID, redacted.ReportID, private.ReportID)
	w.start()
	for _, mail := range w.server.waitFor(2) {
		if _, text, html := mail.read(t); strings.Contains(text+html, "Canary") {
			t.Errorf("a mail has words that are gone:\n%s", text)
		}
	}
	w.waitFor(`select count(*) from deliveries where state <> 'done'`, 1)
	if n := w.number(`select count(*) from deliveries where state = 'cancelled' and report_id = $1`, hidden.ReportID); n != 1 {
		t.Error("the mail about a hidden report is not cancelled")
	}
}
