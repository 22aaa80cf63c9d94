package report

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/text"
)

// The kinds of faults that only guests have.
const (
	NoGuests         fault.Kind = "no guests"
	NoGuest          fault.Kind = "no guest"
	GuestsClosed     fault.Kind = "guests closed"
	NotForGuests     fault.Kind = "not for guests"
	SignedIn         fault.Kind = "signed in"
	UnknownCode      fault.Kind = "unknown code"
	UsedCode         fault.Kind = "used code"
	ExpiredCode      fault.Kind = "expired code"
	AdoptedElsewhere fault.Kind = "adopted elsewhere"
)

// The faults of guests.
var (
	ErrNoGuests         = fault.New(NoGuests, "reporting without an account is off in this city")
	ErrNoGuest          = fault.New(NoGuest, "this browser has no guest whose reports the account could take over")
	ErrGuestsClosed     = fault.New(GuestsClosed, "reporting without an account is closed for the time being; sign in with an account")
	ErrNoGuestVotes     = fault.New(NotForGuests, "guests do not vote in this city; sign in with an account")
	ErrNoGuestComments  = fault.New(NotForGuests, "guests do not comment in this city; sign in with an account")
	ErrOnlyGuests       = fault.New(NotForGuests, "an account needs no code: sign in with it on the other device")
	ErrNotGuests        = fault.New(NotForGuests, "a guest takes over nothing; sign in with an account")
	ErrSignedIn         = fault.New(SignedIn, "somebody is signed in here; sign out first")
	ErrUnknownCode      = fault.New(UnknownCode, "no guest has this code")
	ErrUsedCode         = fault.New(UsedCode, "the code has been used; make another one")
	ErrExpiredCode      = fault.New(ExpiredCode, "the code counts no more: it is older than ten minutes, or there is a newer one; make another one")
	ErrAdoptedElsewhere = fault.New(AdoptedElsewhere, "another account has taken over the reports of this guest")
	// ErrNamedGuest refuses a report of a guest that is not anonymous.
	ErrNamedGuest = fault.NewInvalid("/privacy_level", "must be anonymous: a guest has no name")
	// ErrGuestGone refuses what a guest does while an account takes them over.
	ErrGuestGone = fault.New(NotForGuests, "an account has taken over the reports of this guest; sign in with it")
)

// A GuestQuota refuses a report of a guest who has filed as many as the city takes in a day.
type GuestQuota struct {
	PerDay int
	Wait   time.Duration // until the guest may file again
}

// Error says that there is no further report today.
func (*GuestQuota) Error() string {
	return "the guest has filed as many reports as the city takes in a day"
}

// GuestDay is the time in which a guest files so many reports at most.
const GuestDay = 24 * time.Hour

// A GuestSwitch says whether there are new guests, and reports of guests, now.
type GuestSwitch struct {
	Open      bool
	Reason    string     // of the last change
	ChangedAt *time.Time // nil if nobody has changed it
}

// GuestCodeLife is how long a code opens a guest's session.
const GuestCodeLife = 10 * time.Minute

// guestCodeLength gives 50 bits: a million guesses within the life of a million codes hit
// one with a chance of one to a thousand, and an address has far fewer guesses.
const guestCodeLength = 10

// NewGuestCode returns a random code, in its plain form.
func NewGuestCode() string {
	random := make([]byte, guestCodeLength)
	_, _ = rand.Read(random) // never fails, see crypto/rand
	for i, b := range random {
		random[i] = base32[int(b)%len(base32)]
	}
	return string(random)
}

// ShowGuestCode returns a code as people read it.
func ShowGuestCode(code string) string {
	return code[:guestCodeLength/2] + "-" + code[guestCodeLength/2:]
}

// ParseGuestCode returns the plain form of a code as somebody has typed it.
func ParseGuestCode(typed string) (string, error) {
	code := base32Spelling(text.Code(typed))
	if len(code) != guestCodeLength || strings.Trim(code, base32) != "" {
		return "", fault.NewInvalid("/code", "must be a code of ten letters and digits, such as 7K3QF-M2XWD")
	}
	return code, nil
}
