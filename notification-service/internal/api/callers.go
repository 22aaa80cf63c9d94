package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Callers are the addresses of those for whom officials file reports.
type Callers struct {
	Mail   Mail
	Store  *postgres.Callers
	Ring   *event.Keyring           // opens whom a report was filed for
	Erased func(userID string) bool // whether a person was erased, and must not come back
}

// Operations are those about callers. The report is in the bodies, because paths
// are in logs: they would say which anonymous reports came by telephone.
func (s Callers) Operations() openapi.Operations {
	operations := openapi.Operations{
		"setCaller":   {Handler: service.Decoded(s.setCaller), Timeout: service.DefaultTimeout},
		"readCaller":  {Handler: service.Decoded(s.readCaller), Timeout: service.DefaultTimeout},
		"findCallers": {Handler: service.Decoded(s.findCallers), Timeout: service.DefaultTimeout},
	}
	if s.Mail.Contacts == nil {
		refuse(operations, errNoMail)
	}
	return operations
}

func callerOf(c email.Caller) notificationapi.Caller {
	return notificationapi.Caller{State: notificationapi.ContactState(c.State), Language: notificationapi.MailLanguage(c.Language)}
}

func errNotTheCaller(err error) error {
	return &fault.Error{Kind: fault.Invalid, Field: "/caller", Msg: "must be the caller of this report, as its officials' view has it", Err: err}
}

// setCaller handles PUT /callers.
func (s Callers) setCaller(w http.ResponseWriter, r *http.Request, request notificationapi.NewCaller) error {
	caller, err := s.Ring.Open(request.ReportID, request.Caller)
	if err != nil || !event.IsCaller(caller) {
		return errNotTheCaller(err)
	}
	if s.Erased != nil && s.Erased(caller) {
		return email.ErrNoCaller
	}
	c, address, err := s.Mail.newContact(notificationapi.NewContact{Address: request.Address, Language: request.Language, Zone: request.Zone})
	if err != nil {
		return err
	}
	token := email.NewToken()
	proof := postgres.Proof{Hash: email.TokenHash(token), Body: func(contact uuid.UUID) ([]byte, error) {
		return json.Marshal(email.SealedCode{Code: s.Mail.Keys.SealToken(contact, token)})
	}}
	kept, err := s.Store.Set(r.Context(), notification.Reader{UserID: caller}, request.ReportID, c, s.Mail.Keys.AddressHashes(address), proof)
	return service.Answer(w, http.StatusOK, callerOf(kept), err)
}

// readCaller handles POST /callers/state, which changes nothing.
func (s Callers) readCaller(w http.ResponseWriter, r *http.Request, request notificationapi.CallerQuery) error {
	if auth.Must(r).Limited() { // only who works on the report has it
		if caller, err := s.Ring.Open(request.ReportID, request.Caller); err != nil || !event.IsCaller(caller) {
			return errNotTheCaller(err)
		}
	}
	c, err := s.Store.Get(r.Context(), request.ReportID)
	return service.Answer(w, http.StatusOK, callerOf(c), err)
}

// findCallers handles POST /admin/callers/search. The address is in the body, because
// paths are in logs.
func (s Callers) findCallers(w http.ResponseWriter, r *http.Request, request notificationapi.CallerSearch) error {
	address, err := email.ParseAddress(request.Address)
	if err != nil {
		return err
	}
	ids, err := s.Store.Find(r.Context(), s.Mail.Keys.AddressHashes(address))
	return service.Answer(w, http.StatusOK, notificationapi.FoundCallers{UserIds: ids}, err)
}

// Links adds what takes no sign-in to r: pages behind links in mails, and what a mail server
// passes on. A cookie that has expired must not be in the way.
func (s Callers) Links(r chi.Router, errs service.Errors) {
	for path, h := range map[string]service.HandlerFunc{"/u/{token}": s.Mail.unsubscribe, "/p/{token}": s.prove} {
		page := errs.Handle(service.Timeout(service.DefaultTimeout, h))
		for _, path := range []string{path, path + "/"} {
			r.Get(path, page)
			r.Post(path, page)
		}
	}
	r.Post("/mail/bounces", errs.Handle(service.Timeout(service.DefaultTimeout, s.Mail.takeBounce)))
}

// prove handles GET and POST /p/{token}, as unsubscribe does /u/{token}: a GET says what
// the address is for, and changes nothing, and a POST from the button of that page proves
// it.
func (s Callers) prove(w http.ResponseWriter, r *http.Request) error {
	if s.Mail.Contacts == nil {
		return errNoMail
	}
	act := s.Store.Provable
	if r.Method == http.MethodPost {
		act = s.Store.Prove
	}
	status := http.StatusOK
	caller, err := act(r.Context(), email.TokenHash(email.LinkToken(r.PathValue("token"))))
	if errors.Is(err, email.ErrProof) { // in words for whoever has the mail
		status, caller.Language, err = http.StatusNotFound, wording.Preferred(r.Header.Get("Accept-Language")), nil
	}
	if err != nil {
		return err
	}
	page, err := email.ProofPage(caller)
	if err != nil {
		return err
	}
	writeLinkPage(w, status, page)
	return nil
}
