package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Mail is what the API does about mails; it sends none. The zero Mail is that of a
// city without a mail server.
type Mail struct {
	Contacts     *postgres.Contacts
	Digests      *postgres.Digests
	Bounces      *postgres.Mails
	Keys         *email.Keys
	BounceSecret string // of the mail server that passes bounces on; without it none are accepted
	// Own are the addresses that the city sends from, or is written to at: no resident
	// has them.
	Own []string
}

// MailProblems are the kinds of failures that only mails have, as the client sees
// them.
var MailProblems = map[fault.Kind]service.ProblemType{email.TooMany: tooManyCodes}

var tooManyCodes = service.ProblemType{
	Status: service.TooManyRequests.Status, Name: service.TooManyRequests.Name, Title: service.TooManyRequests.Title,
	RetryAfter: email.CodePause,
}

// errNoMail answers everything about mails where there are none.
var errNoMail = fault.New(fault.NotFound, "this city sends no mails")

// Operations are those about mails.
func (s Mail) Operations() openapi.Operations {
	operations := openapi.Operations{
		"readContact":     {Handler: s.readContact, Timeout: service.DefaultTimeout},
		"setContact":      {Handler: service.Decoded(s.setContact), Timeout: service.DefaultTimeout},
		"removeContact":   {Handler: s.removeContact, Timeout: service.DefaultTimeout},
		"sendContactCode": {Handler: s.sendContactCode, Timeout: service.DefaultTimeout},
		"verifyContact":   {Handler: service.Decoded(s.verifyContact), Timeout: service.DefaultTimeout},
		"readDigest":      {Handler: s.readDigest, Timeout: service.DefaultTimeout},
		"setDigest":       {Handler: service.Decoded(s.setDigest), Timeout: service.DefaultTimeout},
	}
	if s.Contacts == nil {
		refuse(operations, errNoMail)
	}
	return operations
}

// answerContact answers with a contact as its reader sees it, unless err says that there is none.
func (s Mail) answerContact(w http.ResponseWriter, c email.Contact, err error) error {
	if err != nil {
		return err
	}
	address, err := s.Keys.Open(c.ID, c.Address)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, notificationapi.Contact{
		Address: address, Language: notificationapi.MailLanguage(c.Language), Zone: c.Zone, State: notificationapi.ContactState(c.State), Email: mailKinds(c.Kinds),
	})
}

// readContact handles GET /me/contact.
func (s Mail) readContact(w http.ResponseWriter, r *http.Request) error {
	c, err := s.Contacts.Get(r.Context(), reader(r))
	if fault.KindOf(err) == fault.NotFound { // most readers have none, and a browser logs each 404
		return service.NoContent(w)
	}
	return s.answerContact(w, c, err)
}

// setContact handles PUT /me/contact.
func (s Mail) setContact(w http.ResponseWriter, r *http.Request, request notificationapi.NewContact) error {
	c, address, err := s.newContact(request)
	if err != nil {
		return err
	}
	c, err = s.Contacts.Set(r.Context(), reader(r), c, s.Keys.AddressHashes(address))
	return s.answerContact(w, c, err)
}

// newContact returns the contact that a request asks for, not kept yet, and its address.
func (s Mail) newContact(request notificationapi.NewContact) (c email.Contact, address string, err error) {
	address, err = email.ParseAddress(request.Address)
	if err != nil {
		return c, "", err
	}
	if slices.ContainsFunc(s.Own, func(own string) bool { return strings.EqualFold(own, address) }) {
		return c, "", fault.NewInvalid("/address", "must be your own: this is an address of the city")
	}
	zone, err := email.Zone(request.Zone)
	if err != nil {
		return c, "", err
	}
	language, err := wording.ParseLanguage(string(request.Language), "/language")
	if err != nil {
		return c, "", err
	}
	// Ids are ordered by time, so that deliveries written to millions at once lie side
	// by side in the index of the ledger's targets.
	c = email.Contact{ID: uuid.Must(uuid.NewV7()), Lane: s.Keys.Lane(address), Language: language, Zone: zone.String()}
	c.Address = s.Keys.SealAddress(c.ID, address)
	return c, address, nil
}

// removeContact handles DELETE /me/contact.
func (s Mail) removeContact(w http.ResponseWriter, r *http.Request) error {
	return service.Done(w, s.Contacts.Remove(r.Context(), reader(r)))
}

// sendContactCode handles POST /me/contact/code.
func (s Mail) sendContactCode(w http.ResponseWriter, r *http.Request) error {
	c, err := s.Contacts.Get(r.Context(), reader(r))
	if err != nil {
		return err
	}
	code := email.NewCode()
	body, err := json.Marshal(email.SealedCode{Code: s.Keys.SealCode(c.ID, code)})
	if err != nil {
		return fmt.Errorf("encode code: %w", err)
	}
	if err := s.Contacts.SendCode(r.Context(), reader(r), c.ID, s.Keys.CodeHashes(c.ID, code)[0], body); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// verifyContact handles POST /me/contact/verify.
func (s Mail) verifyContact(w http.ResponseWriter, r *http.Request, request notificationapi.ContactCode) error {
	c, err := s.Contacts.Get(r.Context(), reader(r))
	if err != nil {
		return err
	}
	c, err = s.Contacts.VerifyCode(r.Context(), reader(r), c.ID, s.Keys.CodeHashes(c.ID, request.Code))
	return s.answerContact(w, c, err)
}

// weekdays are the days of the week as the document names them.
var weekdays = []notificationapi.DigestSettingsWeekday{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// digestOf returns how often a reader wants a summary as the document has it.
func digestOf(d email.DigestSettings) notificationapi.DigestSettings {
	answer := notificationapi.DigestSettings{Frequency: notificationapi.DigestSettingsFrequency(d.Frequency), At: d.At.String()}
	if d.Frequency == email.Weekly {
		answer.Weekday = weekdays[d.Weekday]
	}
	return answer
}

// readDigest handles GET /me/digest.
func (s Mail) readDigest(w http.ResponseWriter, r *http.Request) error {
	d, err := s.Digests.Settings(r.Context(), reader(r))
	return service.Answer(w, http.StatusOK, digestOf(d), err)
}

// setDigest handles PUT /me/digest.
func (s Mail) setDigest(w http.ResponseWriter, r *http.Request, request notificationapi.DigestSettings) error {
	d := email.DigestSettings{Frequency: email.Frequency(request.Frequency), Weekday: time.Monday, At: email.DefaultDigestAt}
	if request.At != "" {
		var err error
		if d.At, err = clockOf("/at", request.At); err != nil {
			return err
		}
	}
	if request.Weekday != "" {
		d.Weekday = time.Weekday(slices.Index(weekdays, request.Weekday))
	}
	return service.Answer(w, http.StatusOK, digestOf(d), s.Digests.Set(r.Context(), reader(r), d))
}

// bounceHeader is the header with the secret of the mail server that passes bounces on.
// Authorization is for tokens.
const bounceHeader = "X-Mail-Secret"

// takeBounce handles POST /mail/bounces: the city's mail server passes on here what
// comes to the addresses of bounces. Any other message is accepted and dropped: a
// mail server would only send it once more.
func (s Mail) takeBounce(w http.ResponseWriter, r *http.Request) error {
	if s.Contacts == nil || s.BounceSecret == "" {
		return errNoMail
	}
	given, want := sha256.Sum256([]byte(r.Header.Get(bounceHeader))), sha256.Sum256([]byte(s.BounceSecret))
	if subtle.ConstantTimeCompare(given[:], want[:]) == 0 { // of hashes, so that the time does not reveal the length either
		return service.Unauthenticated.New("send the secret in " + bounceHeader)
	}
	bounce, err := s.Keys.ParseBounce(r.Body)
	if err != nil && !errors.Is(err, email.ErrNoBounce) {
		return err
	}
	if err == nil {
		if err := s.Bounces.MailBounced(r.Context(), bounce); err != nil {
			return err
		}
	}
	return service.NoContent(w)
}

// unsubscribe handles GET and POST /u/{token}. The token alone counts: no cookie,
// no sign-in. A GET says which mails would end, and changes nothing: mails are
// scanned, and links in them opened, by programs on the way. A POST ends them, from
// the button of that page or from a mail provider's (RFC 8058), whose body is
// List-Unsubscribe=One-Click, and which follows no redirect.
func (s Mail) unsubscribe(w http.ResponseWriter, r *http.Request) error {
	if s.Contacts == nil {
		return errNoMail
	}
	hash := email.TokenHash(email.LinkToken(r.PathValue("token")))
	act := s.Contacts.Unsubscription
	if r.Method == http.MethodPost {
		act = s.Contacts.Unsubscribe
	}
	u, err := act(r.Context(), hash)
	if err != nil {
		return err
	}
	page, err := email.UnsubscribePage(u)
	if err != nil {
		return err
	}
	writeLinkPage(w, http.StatusOK, page)
	return nil
}

// writeLinkPage answers with a page behind a link in a mail.
func writeLinkPage(w http.ResponseWriter, status int, page []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", email.UnsubscribePolicy)
	h.Set("Referrer-Policy", "no-referrer") // the address has the token
	h.Set("X-Robots-Tag", "noindex")
	w.WriteHeader(status)
	_, _ = w.Write(page) // fails if the client has left
}
