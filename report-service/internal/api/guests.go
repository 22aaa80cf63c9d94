package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// Guests are people who report without an account.
type Guests struct {
	On         bool // otherwise there are none, and tokens of guests are refused
	Store      *postgres.Guests
	Settings   *settings.City
	Auth       *auth.Verifier
	PerDay     int // reports of each guest
	PerAddress ratelimit.Limit
	Votes      bool
	Comments   bool
	Log        zerolog.Logger

	making, trying *ratelimit.Limiter // by address
	acting, acted  *ratelimit.Limiter // by address, and by guest; see act
	fromPrivate    func()             // warns once
}

const (
	// sessionsPerGuest is how many sessions an address may have opened for each guest who
	// files from there: most who open one look around and leave.
	sessionsPerGuest = 10
	// codesPerGuest bounds a loop: a person needs a few.
	codesPerGuest = 20
	// triesPerAddress is how often an address may guess codes in an hour.
	triesPerAddress = 30
)

// Limit begins to count guests who act, before h is given to those parts in which they do.
func (h *Guests) Limit() {
	h.acting = ratelimit.New(h.PerAddress)
	h.acted = ratelimit.New(ratelimit.Limit{Turns: min(1, h.PerAddress.Turns), Period: h.PerAddress.Period})
}

// Operations are those on guests.
func (h Guests) Operations() openapi.Operations {
	h.making, h.trying = ratelimit.New(ratelimit.Limit{Turns: sessionsPerGuest * h.PerAddress.Turns, Period: h.PerAddress.Period}), ratelimit.New(ratelimit.Limit{Turns: triesPerAddress, Period: time.Hour})
	h.fromPrivate = sync.OnceFunc(func() {
		h.Log.Warn().Msg("guests come from a private address: if a proxy is before the gateway, all clients share one address and its limits; set GATEWAY_TRUSTED_PROXY")
	})
	coding := ratelimit.New(ratelimit.Limit{Turns: codesPerGuest, Period: time.Hour})
	all := openapi.Operations{
		"readGuests":       {Handler: answered(h.read), Timeout: service.DefaultTimeout},
		"createGuest":      {Handler: h.create, Timeout: changeTimeout},
		"createGuestCode":  {Handler: limited(coding, h.createCode), Timeout: changeTimeout},
		"openGuestSession": {Handler: service.Decoded(h.openSession), Timeout: changeTimeout},
		"readAdoption":     {Handler: answered(h.readAdoption), Timeout: service.DefaultTimeout},
		"adoptGuest":       {Handler: h.adopt, Timeout: service.DefaultTimeout},
		"declineAdoption":  {Handler: h.decline, Timeout: service.DefaultTimeout},
		"readGuestSwitch":  {Handler: answered(h.readSwitch), Timeout: service.DefaultTimeout},
		"setGuestSwitch":   {Handler: answeredTo(h.setSwitch), Timeout: changeTimeout},
	}
	if !h.On {
		for name := range all {
			all[name] = service.Operation{Handler: func(http.ResponseWriter, *http.Request) error { return report.ErrNoGuests }, Timeout: service.DefaultTimeout}
		}
	}
	return all
}

// read handles GET /guests.
func (h Guests) read(r *http.Request) (reportapi.GuestsNow, error) {
	now, err := h.Settings.GuestSwitch(r.Context())
	return reportapi.GuestsNow{Open: now.Open, Votes: h.Votes, Comments: h.Comments, ReportsPerDay: int32(h.PerDay)}, err //nolint:gosec // it is 100 at most
}

// The problems of guests that say when the same request may succeed.
var (
	tooManyGuests = service.ProblemType{Status: http.StatusTooManyRequests, Name: "too-many-guests", Title: "Too many guests from this address"}
	guestQuota    = service.ProblemType{Status: http.StatusTooManyRequests, Name: "guest-quota", Title: "The guest has filed enough for a day"}
)

// create handles POST /guests.
func (h Guests) create(w http.ResponseWriter, r *http.Request) error {
	if user(r).ID != "" {
		return report.ErrSignedIn
	}
	if err := h.open(r.Context()); err != nil {
		return err
	}
	if err := auth.CheckOrigin(r); err != nil {
		return err
	}
	if address, err := netip.ParseAddr(service.ClientAddress(r)); err == nil && address.IsPrivate() {
		h.fromPrivate()
	}
	if wait := h.making.Take(networkOf(r)); wait > 0 {
		return guestsProblem(wait)
	}
	return h.Auth.OpenGuest(w, r, auth.NewGuest())
}

// guestsProblem says when another guest may come.
func guestsProblem(wait time.Duration) error {
	return refusedFor(wait, tooManyGuests, "try again later, or sign in with an account")
}

// act counts a guest who files, votes or comments for the address, once in a period. Whoever
// only looks around is not counted: hundreds of people may share an address.
func (h Guests) act(r *http.Request) error {
	id := user(r).ID
	if h.acted.Take(id) > 0 {
		return nil
	}
	if wait := h.acting.Take(networkOf(r)); wait > 0 {
		h.acted.GiveBack(id)
		return guestsProblem(wait)
	}
	return nil
}

// may answers guests with refusal, unless they are allowed.
func (h Guests) may(allowed bool, refusal error, next service.HandlerFunc) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if user(r).Guest {
			if !allowed {
				return refusal
			}
			if err := h.act(r); err != nil {
				return err
			}
		}
		return next(w, r)
	}
}

// open returns an error while an operator has closed reporting without an account.
func (h Guests) open(ctx context.Context) error {
	now, err := h.Settings.GuestSwitch(ctx)
	if err == nil && !now.Open {
		return report.ErrGuestsClosed
	}
	return err
}

// createCode handles POST /guests/code.
func (h Guests) createCode(w http.ResponseWriter, r *http.Request) error {
	if !user(r).Guest {
		return report.ErrOnlyGuests
	}
	code, expires, err := h.Store.NewCode(r.Context(), user(r).ID)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusCreated, reportapi.GuestCode{Code: report.ShowGuestCode(code), ExpiresAt: expires})
}

// openSession handles POST /guests/session. Every try counts, also a right one.
func (h Guests) openSession(w http.ResponseWriter, r *http.Request, req reportapi.GuestCodeEntry) error {
	if user(r).ID != "" {
		return report.ErrSignedIn
	}
	if err := auth.CheckOrigin(r); err != nil { // or another site would use up the code
		return err
	}
	code, err := report.ParseGuestCode(req.Code)
	if err != nil {
		return err
	}
	return withTurn(h.trying, networkOf(r), "too many codes from this address", func() error {
		id, err := h.Store.Redeem(r.Context(), code)
		if err != nil {
			return err
		}
		return h.Auth.OpenGuest(w, r, id)
	})
}

// guestOf returns the guest whom the caller, an account, may take over.
func (h Guests) guestOf(r *http.Request) (string, error) {
	if user(r).Guest {
		return "", report.ErrNotGuests
	}
	guest, ok := h.Auth.Guest(r)
	if !ok {
		return "", report.ErrNoGuest
	}
	return guest.ID, nil
}

// readAdoption handles GET /guests/adoption.
func (h Guests) readAdoption(r *http.Request) (reportapi.Adoption, error) {
	id, err := h.guestOf(r)
	if err != nil {
		return reportapi.Adoption{}, err
	}
	reports, err := h.Store.Reports(r.Context(), id)
	return reportapi.Adoption{Reports: reports}, err
}

// adopt handles POST /guests/adoption.
func (h Guests) adopt(w http.ResponseWriter, r *http.Request) error {
	id, err := h.guestOf(r)
	if err != nil {
		return err
	}
	reports, err := h.Store.Adopt(r.Context(), id, user(r).ID)
	if err != nil {
		return err
	}
	h.Auth.ForgetGuest(w, r)
	return service.Encode(w, http.StatusOK, reportapi.Adoption{Reports: reports})
}

// decline handles DELETE /guests/adoption.
func (h Guests) decline(w http.ResponseWriter, r *http.Request) error {
	h.Auth.ForgetGuest(w, r)
	return service.NoContent(w)
}

// readSwitch handles GET /admin/reports/guests.
func (h Guests) readSwitch(r *http.Request) (reportapi.GuestSwitch, error) {
	now, err := h.Settings.GuestSwitch(r.Context())
	return switchOf(now), err
}

// setSwitch handles PUT /admin/reports/guests.
func (h Guests) setSwitch(r *http.Request, req reportapi.GuestSwitchChange) (reportapi.GuestSwitch, error) {
	now, err := h.Settings.SetGuestSwitch(r.Context(), req.Open, req.Reason, user(r).AsOfficial())
	return switchOf(now), err
}

func switchOf(s report.GuestSwitch) reportapi.GuestSwitch {
	return reportapi.GuestSwitch{Open: s.Open, Reason: s.Reason, ChangedAt: service.OrZero(s.ChangedAt)}
}

// mayFile returns why a guest may not file a report of that privacy now; nil for accounts.
func (h Guests) mayFile(r *http.Request, privacy report.Privacy) error {
	if !user(r).Guest {
		return nil
	}
	if privacy != report.Anonymous {
		return report.ErrNamedGuest
	}
	if err := h.open(r.Context()); err != nil {
		return err
	}
	return h.act(r)
}

// quotaProblem returns err, or the problem that it is for the client if a guest has filed
// enough.
func quotaProblem(err error) error {
	if quota, ok := errors.AsType[*report.GuestQuota](err); ok {
		return refusedFor(quota.Wait, guestQuota, quota.Error())
	}
	return err
}
