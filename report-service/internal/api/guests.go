package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A GuestStore keeps what the city has to know of people without an account.
type GuestStore interface {
	Switch(ctx context.Context) (report.GuestSwitch, error)
	SetSwitch(ctx context.Context, open bool, reason string, by report.Official) (report.GuestSwitch, error)
	NewCode(ctx context.Context, id string) (code string, expires time.Time, err error)
	Redeem(ctx context.Context, code string) (id string, err error)
	Reports(ctx context.Context, id string) (int64, error)
	Adopt(ctx context.Context, guestID, accountID string) (int64, error)
}

// Guests say how people report without an account.
type Guests struct {
	On         bool // otherwise there are none, and tokens of guests are refused
	Store      GuestStore
	PerDay     int // reports of each guest
	PerAddress ratelimit.Limit
	Votes      bool
	Comments   bool
}

const (
	// codesPerGuest bounds a loop: a person needs a few.
	codesPerGuest = 20
	// triesPerAddress is how often an address may guess codes in an hour.
	triesPerAddress = 30
)

type guestHandlers struct {
	Guests
	auth                   *auth.Verifier
	making, coding, trying *ratelimit.Limiter // by address, guest, address
}

func newGuestHandlers(g Guests, verifier *auth.Verifier) guestHandlers {
	return guestHandlers{
		g, verifier, ratelimit.New(g.PerAddress),
		ratelimit.New(ratelimit.Limit{Turns: codesPerGuest, Period: time.Hour}), ratelimit.New(ratelimit.Limit{Turns: triesPerAddress, Period: time.Hour}),
	}
}

func (h guestHandlers) operations() operations {
	all := operations{
		"readGuests":       {Handler: h.read, Timeout: service.DefaultTimeout},
		"createGuest":      {Handler: h.create, Timeout: changeTimeout},
		"createGuestCode":  {Handler: limited(h.coding, h.createCode), Timeout: changeTimeout},
		"openGuestSession": {Handler: h.openSession, Timeout: changeTimeout},
		"readAdoption":     {Handler: h.readAdoption, Timeout: service.DefaultTimeout},
		"adoptGuest":       {Handler: h.adopt, Timeout: service.DefaultTimeout},
		"declineAdoption":  {Handler: h.decline, Timeout: service.DefaultTimeout},
		"readGuestSwitch":  {Handler: h.readSwitch, Timeout: service.DefaultTimeout},
		"setGuestSwitch":   {Handler: h.setSwitch, Timeout: changeTimeout},
	}
	if !h.On {
		for name := range all {
			all[name] = service.Operation{Handler: func(http.ResponseWriter, *http.Request) error { return report.ErrNoGuests }, Timeout: service.DefaultTimeout}
		}
	}
	return all
}

// read handles GET /guests.
func (h guestHandlers) read(w http.ResponseWriter, r *http.Request) error {
	now, err := h.Store.Switch(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return service.Encode(w, http.StatusOK, reportapi.GuestsNow{Open: now.Open, Votes: h.Votes, Comments: h.Comments, ReportsPerDay: int32(h.PerDay)}) //nolint:gosec // it is 100 at most
}

// The problems of guests that say when the same request may succeed.
var (
	tooManyGuests = service.ProblemType{Status: http.StatusTooManyRequests, Name: "too-many-guests", Title: "Too many guests from this address"}
	guestQuota    = service.ProblemType{Status: http.StatusTooManyRequests, Name: "guest-quota", Title: "The guest has filed enough for a day"}
)

// create handles POST /guests.
func (h guestHandlers) create(w http.ResponseWriter, r *http.Request) error {
	if caller(r).ID != "" {
		return report.ErrSignedIn
	}
	if err := h.open(r.Context()); err != nil {
		return err
	}
	if wait := h.making.Take(networkOf(r)); wait > 0 {
		problem := tooManyGuests
		problem.RetryAfter = wait
		return problem.New("try again later, or sign in with an account")
	}
	return h.auth.OpenGuest(w, r, auth.NewGuest())
}

// open returns an error while an operator has closed reporting without an account.
func (h Guests) open(ctx context.Context) error {
	now, err := h.Store.Switch(ctx)
	if err == nil && !now.Open {
		return report.ErrGuestsClosed
	}
	return err
}

// createCode handles POST /guests/code.
func (h guestHandlers) createCode(w http.ResponseWriter, r *http.Request) error {
	if !caller(r).Guest {
		return report.ErrOnlyGuests
	}
	code, expires, err := h.Store.NewCode(r.Context(), caller(r).ID)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return service.Encode(w, http.StatusCreated, reportapi.GuestCode{Code: report.ShowGuestCode(code), ExpiresAt: expires})
}

// openSession handles POST /guests/session. Every try counts, also a right one.
func (h guestHandlers) openSession(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.GuestCodeEntry](r)
	if err != nil {
		return err
	}
	if caller(r).ID != "" {
		return report.ErrSignedIn
	}
	code, err := report.ParseGuestCode(req.Code)
	if err != nil {
		return err
	}
	return withTurn(h.trying, networkOf(r), "too many codes from this address", func(w http.ResponseWriter, r *http.Request) error {
		id, err := h.Store.Redeem(r.Context(), code)
		if err != nil {
			return err
		}
		return h.auth.OpenGuest(w, r, id)
	}, w, r)
}

// guestOf returns the guest whom the caller, an account, may take over.
func (h guestHandlers) guestOf(r *http.Request) (string, error) {
	if caller(r).Guest {
		return "", report.ErrNotGuests
	}
	guest, ok := h.auth.Guest(r)
	if !ok {
		return "", report.ErrNoGuest
	}
	return guest.ID, nil
}

// readAdoption handles GET /guests/adoption.
func (h guestHandlers) readAdoption(w http.ResponseWriter, r *http.Request) error {
	id, err := h.guestOf(r)
	if err != nil {
		return err
	}
	reports, err := h.Store.Reports(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return service.Encode(w, http.StatusOK, reportapi.Adoption{Reports: reports})
}

// adopt handles POST /guests/adoption.
func (h guestHandlers) adopt(w http.ResponseWriter, r *http.Request) error {
	id, err := h.guestOf(r)
	if err != nil {
		return err
	}
	reports, err := h.Store.Adopt(r.Context(), id, caller(r).ID)
	if err != nil {
		return err
	}
	h.auth.ForgetGuest(w, r)
	w.Header().Set("Cache-Control", "no-store")
	return service.Encode(w, http.StatusOK, reportapi.Adoption{Reports: reports})
}

// decline handles DELETE /guests/adoption.
func (h guestHandlers) decline(w http.ResponseWriter, r *http.Request) error {
	h.auth.ForgetGuest(w, r)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readSwitch handles GET /admin/reports/guests.
func (h guestHandlers) readSwitch(w http.ResponseWriter, r *http.Request) error {
	now, err := h.Store.Switch(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return service.Encode(w, http.StatusOK, switchOf(now))
}

// setSwitch handles PUT /admin/reports/guests.
func (h guestHandlers) setSwitch(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.GuestSwitchChange](r)
	if err != nil {
		return err
	}
	now, err := h.Store.SetSwitch(r.Context(), req.Open, req.Reason, caller(r).AsOfficial())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return service.Encode(w, http.StatusOK, switchOf(now))
}

func switchOf(s report.GuestSwitch) reportapi.GuestSwitch {
	return reportapi.GuestSwitch{Open: s.Open, Reason: s.Reason, ChangedAt: orZero(s.ChangedAt)}
}

// mayFile returns why a guest may not file a report of that privacy now; nil for accounts.
func (h Guests) mayFile(r *http.Request, privacy report.Privacy) error {
	if !caller(r).Guest {
		return nil
	}
	if privacy != report.Anonymous {
		return report.ErrNamedGuest
	}
	return h.open(r.Context())
}

// forGuests answers guests with refusal, unless they are allowed.
func forGuests(allowed bool, refusal error, h service.HandlerFunc) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if caller(r).Guest && !allowed {
			return refusal
		}
		return h(w, r)
	}
}

// quotaProblem returns err, or the problem that it is for the client if a guest has filed
// enough.
func quotaProblem(err error) error {
	quota, ok := errors.AsType[*report.GuestQuota](err)
	if !ok {
		return err
	}
	problem := guestQuota
	problem.RetryAfter = quota.Wait
	return problem.New(quota.Error())
}

// networkOf returns the network of the client, as which all its addresses count.
func networkOf(r *http.Request) string { return service.Network(service.ClientAddress(r)).String() }
