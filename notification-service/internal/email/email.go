// Package email writes to residents who want to follow the city's answers without
// having the page open. It is a channel of the ledger.
//
// It promises:
//
//   - Mail is sent only to addresses whose owner asked for it and proved to own
//     the address, by typing a code into the page while signed in. A link would
//     be opened by programs that scan mails on the way.
//   - A mail is not lost, and not sent twice, as far as SMTP lets us: every
//     try has the same Message-ID, and a mail that may have arrived is tried
//     once more.
//   - A notification that was read on the page is not mailed. The data of a mail are
//     read when it is sent.
//   - A mail about an anonymous report says no more than that there is news: mails
//     pass providers, employers and families.
//   - No request by GET changes anything.
package email

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// Channel is the channel of the ledger whose deliveries are mails. The lane of
// each is that of its recipient's mail host, the target the id of a Contact.
const Channel = "email"

// The kinds of deliveries. Those about one notification have its type as their
// kind, or Anonymous; their message id is that of the notification.
const (
	// Anonymous is news about a report that was filed anonymously.
	Anonymous = "anonymous"
	// Digest is a summary of notifications since the digest before. Its body is a
	// Window.
	Digest = "digest"
	// Code has the code that proves an address. Its body is a SealedCode.
	Code = "code"
	// Proof has the link that proves the address of a caller. Its body is a SealedCode, whose
	// code is the token in the link.
	Proof = "proof"
	// Overdue notifies officials of reports that are overdue three times over. Its
	// body is a Window of their stream.
	Overdue = "overdue"
	// EndpointDisabled notifies operators that an endpoint of webhooks failed for too
	// long, or is gone. Its body is a NoticedEndpoint.
	EndpointDisabled = "endpoint"
	// EndpointFailing warns operators of an endpoint that has failed for half of the time
	// after which it is disabled. Its body is a NoticedEndpoint.
	EndpointFailing = "failing_endpoint"
	// FirmAsked, FirmReminded and FirmEnded go to a firm that repairs, which has no account and
	// no Contact. Their body is an event.FirmNotice, their target the id of its job.
	FirmAsked    = firmKinds + string(event.FirmAsked)
	FirmReminded = firmKinds + string(event.FirmReminded)
	FirmEnded    = firmKinds + string(event.FirmEnded)
	// TargetDiffers notifies operators of the first reports about which the city and a
	// target of Open311 differ. Its body is a NoticedEndpoint.
	TargetDiffers = "differing_target"
)

const firmKinds = "firm_"

// FirmKind returns the kind of a mail to a firm.
func FirmKind(k event.FirmNoticeKind) string { return firmKinds + string(k) }

// The targets of notices, which are mailboxes of the city instead of contacts; the
// environment names them. Roles live in tokens and are not stored here, so former
// officials could not be removed from a list of recipients.
const (
	Officials = "officials"
	Operators = "operators"
	// NoticeLane is the lane of all notices.
	NoticeLane = "notices"
)

// OverdueLevel is the level from which on officials are mailed.
const OverdueLevel = 3

// Kinds are the types of notifications that a reader may be written about at
// once.
var Kinds = []string{string(event.StatusUpdatedKey), string(event.AskedKey), string(event.RemindedKey), string(event.VoteReceivedKey), string(event.CorrectedKey)}

// AnonymousKinds are those of them that a reader may be written about who has agreed to
// mails about an anonymous report.
var AnonymousKinds = []string{string(event.StatusUpdatedKey), string(event.AskedKey), string(event.RemindedKey)}

// DefaultKinds are the kinds that a reader is mailed once an address is proven, until
// the reader chooses. Votes may be many.
var DefaultKinds = []string{string(event.StatusUpdatedKey), string(event.AskedKey), string(event.RemindedKey)}

// Times that no operator needs to change.
const (
	// Lifetime is for how long a mail about a notification is tried: later it would
	// not be news.
	Lifetime = 48 * time.Hour
	// CodeLifetime is for how long a code proves an address.
	CodeLifetime = 10 * time.Minute
	// CodeTries is how often a code may be typed.
	CodeTries = 5
	// Reader and address each have a code a minute and five a day.
	CodePause  = time.Minute
	CodePeriod = 24 * time.Hour
	MaxCodes   = 5
	// Soft bounces, on so many days in such a time, count as one that is hard.
	MaxSoftBounces   = 3
	SoftBouncePeriod = 14 * 24 * time.Hour
	// So many people whose addresses are refused within such a time, and no fewer
	// than those who got their mails, are the sender's fault: a relay or a mail host
	// that has lost its list of mailboxes. Nothing changes for them, and mails rest
	// for a while.
	BurstSize   = 5
	BurstPeriod = time.Hour
	BurstPause  = 10 * time.Minute
	// A proof of one address is mailed so often, and to an address of callers so many times
	// a day.
	ProofPause = time.Hour
	MaxProofs  = 5
	// UnverifiedFor is how long an address is kept that nobody has proven.
	UnverifiedFor = 7 * 24 * time.Hour
	// NoticeAfter is how long after the hour in which reports fell overdue the
	// officials are mailed: no transaction of that hour is still under way.
	NoticeAfter = time.Minute
	// MaxItems is how much of a digest is written out. The page has the rest.
	MaxItems = 20
)

// A State says whether a Contact is written to.
type State string

// The states of a contact are drawn in migrations/notification/0008_email.up.sql.
const (
	Unverified State = "unverified" // only codes are sent
	Active     State = "active"
	Bounced    State = "bounced"    // the address accepts no more mail
	Complained State = "complained" // the reader told their provider that our mails are spam
)

// A Contact is a reader's address and their choices about mails.
type Contact struct {
	ID       uuid.UUID
	Address  string // sealed, see Keys
	Lane     string
	Language wording.Language
	Zone     string // the name of a time zone (IANA)
	State    State
	Kinds    []string      // of notifications that are mailed at once
	Quiet    *ledger.Quiet // nil is none
}

// A Window is the part of a stream that a digest is about: the numbers above
// After, up to To.
type Window struct {
	After int64 `json:"after"`
	To    int64 `json:"to"`
}

// A SealedCode is the body of a delivery of a code.
type SealedCode struct {
	Code string `json:"code"` // sealed with the contact's id
}

// A NoticedEndpoint is the body of a delivery of kind EndpointDisabled, EndpointFailing or
// TargetDiffers.
type NoticedEndpoint struct {
	ID uuid.UUID `json:"id"`
}

// Called is what a mail to a caller may say of the report that an official filed for them.
type Called struct {
	ReportID  uuid.UUID
	Category  string // empty if everybody else must not see the report, or it is not known yet
	Shown     bool   // whether everybody sees the report
	EnteredAt time.Time
}

// A Caller is what officials see of the contact of somebody for whom they filed a report.
type Caller struct {
	State    State
	Language wording.Language
}

// A Notice is what a mail to officials or operators is about. It names no report:
// some of them are anonymous.
type Notice struct {
	Overdue  []OverdueCount
	Endpoint string // what operators call the one that is disabled, or about to be
	Reason   string // for which it is disabled: "failing" or "gone"
	Hours    int    // in how many it is about to be; 0 is in less than one
}

// An OverdueCount is how many reports of a category are overdue.
type OverdueCount struct {
	CategoryID int32
	Category   string
	Count      int64
}

// A Draft is what a delivery is about at the moment of sending.
type Draft struct {
	Contact     Contact
	Now         time.Time         // by the database
	Items       []wording.Item    // unread ones come first; none with a code
	Total       int64             // how many there are in all
	Withheld    int64             // of them, about anonymous reports
	Unsubscribe string            // the token, sealed; empty if there is none yet
	Notice      *Notice           // nil but for notices, which have no Contact
	Called      *Called           // nil unless the Contact is that of a caller
	Firm        *event.FirmNotice // nil but for mails to firms
}

// ErrNoContact says that the reader gave another address, or removed theirs. It is a
// reason not to send a mail that waits, beside those of package ledger.
var ErrNoContact = errors.New("the contact has been removed")

// Failures that a client may see.
var (
	// ErrNoAddress says that the reader has given no address.
	ErrNoAddress = fault.New(fault.NotFound, "you have given no address")
	// ErrCode says that a code is wrong, or its time is over.
	ErrCode = fault.NewInvalid("/code", "not the code that was sent last, or older than ten minutes; have a new one sent")
	// ErrTooManyCodes says that a reader asks for codes too often.
	ErrTooManyCodes = fault.New(TooMany, "one code per minute and five per day can be sent")
	// ErrNoCaller says that nobody has entered an address for the report, or it is gone.
	ErrNoCaller = fault.New(fault.NotFound, "the report has no caller with an address")
	// ErrProof says that a link proves nothing.
	ErrProof = fault.New(fault.NotFound, "the link was used, is incomplete, or is older than seven days")
	// ErrProven says that an address is its owner's concern from now on.
	ErrProven = fault.New(fault.Conflict, "the caller has confirmed an address, and alone may change it")
	// ErrTooManyProofs says that too many mails with links would be sent.
	ErrTooManyProofs = fault.New(TooMany, "five addresses a day can be entered for a report, and five mails a day go to an address")
	// ErrToken says that a token ends nothing.
	ErrToken = fault.New(fault.NotFound, "these mails have ended already, or the address is incomplete")
)

// TooMany is the kind of failure of requests that come too often.
const TooMany fault.Kind = "too many"
