package api

import (
	"errors"
	"net/http"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Preferences are the kinds of notifications that readers choose for mails and pushes alike,
// and for which anonymous reports they want them.
type Preferences struct {
	Mail     Mail
	Push     Push
	Consents *postgres.Contacts
}

// Operations are those about preferences.
func (s Preferences) Operations() openapi.Operations {
	operations := openapi.Operations{
		"readPreferences": {Handler: s.readPreferences, Timeout: service.DefaultTimeout},
		"setPreferences":  {Handler: service.Decoded(s.setPreferences), Timeout: service.DefaultTimeout},
		"setMailConsent":  {Handler: service.Decoded(s.setMailConsent), Timeout: service.DefaultTimeout},
	}
	if s.Mail.Contacts == nil && s.Push.Devices == nil {
		refuse(operations, errNoMail)
	}
	return operations
}

// answerPreferences answers with the kinds that a reader gets at once.
func (s Preferences) answerPreferences(w http.ResponseWriter, r *http.Request, c email.Contact) error {
	answer := notificationapi.Preferences{Email: mailKinds(c.Kinds)}
	if s.Push.Devices != nil {
		kinds, err := s.Push.Devices.Kinds(r.Context(), reader(r))
		if err != nil {
			return err
		}
		answer.Push = mailKinds(kinds)
	}
	if c.Quiet != nil {
		answer.QuietHours = notificationapi.QuietHours{From: schedule.Clock(c.Quiet.From).String(), To: schedule.Clock(c.Quiet.To).String()}
	}
	return service.Encode(w, http.StatusOK, answer)
}

// mailKinds returns kinds as the document has them.
func mailKinds(kinds []string) []notificationapi.MailKind {
	return service.Each(kinds, func(kind string) notificationapi.MailKind { return notificationapi.MailKind(kind) })
}

// readPreferences handles GET /me/preferences.
func (s Preferences) readPreferences(w http.ResponseWriter, r *http.Request) error {
	var c email.Contact
	if s.Mail.Contacts != nil {
		var err error
		if c, err = s.Mail.Contacts.Get(r.Context(), reader(r)); err != nil && !errors.Is(err, email.ErrNoAddress) { // without an address nothing is mailed
			return err
		}
	}
	return s.answerPreferences(w, r, c)
}

// setPreferences handles PUT /me/preferences.
func (s Preferences) setPreferences(w http.ResponseWriter, r *http.Request, request notificationapi.Preferences) error {
	var quiet *ledger.Quiet
	if request.QuietHours != (notificationapi.QuietHours{}) {
		from, err := clockOf("/quiet_hours/from", request.QuietHours.From)
		if err != nil {
			return err
		}
		to, err := clockOf("/quiet_hours/to", request.QuietHours.To)
		if err != nil {
			return err
		}
		if from == to {
			return fault.NewInvalid("/quiet_hours/to", "must differ from from; to get nothing at once, leave email and push empty")
		}
		quiet = &ledger.Quiet{From: int(from), To: int(to)}
	}
	var c email.Contact
	var err error = errNoMail
	if s.Mail.Contacts != nil {
		c, err = s.Mail.Contacts.SetPreferences(r.Context(), reader(r), names(request.Email), quiet)
	}
	pushed := s.Push.Devices != nil && request.Push != nil
	if err != nil && !(pushed && len(request.Email) == 0 && quiet == nil && fault.KindOf(err) == fault.NotFound) { // no mails are wanted
		return err
	}
	if pushed {
		if err := s.Push.Devices.SetKinds(r.Context(), reader(r), names(request.Push)); err != nil {
			return err
		}
	}
	return s.answerPreferences(w, r, c)
}

// names returns kinds as they are kept.
func names(kinds []notificationapi.MailKind) []string {
	return service.Each(kinds, func(kind notificationapi.MailKind) string { return string(kind) })
}

// clockOf reads a time of the day that the document let pass.
func clockOf(field, text string) (schedule.Clock, error) {
	clock, err := schedule.ParseClock(text)
	if err != nil {
		return 0, &fault.Error{Kind: fault.Invalid, Field: field, Msg: "must be a time of the day, such as 07:00", Err: err}
	}
	return clock, nil
}

// setMailConsent handles PUT /me/mail-consents. The report is in the body, because
// paths are in logs, beside an address.
func (s Preferences) setMailConsent(w http.ResponseWriter, r *http.Request, request notificationapi.MailConsent) error {
	return service.Done(w, s.Consents.SetConsent(r.Context(), reader(r), request.ReportID, request.Mail))
}
