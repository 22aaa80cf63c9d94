package ledger

import (
	"errors"
	"time"
)

// Reasons not to send a delivery that waits for a reader.
var (
	// ErrUnwanted: the reader no longer wants notifications of this kind.
	ErrUnwanted = errors.New("the reader no longer wants it")
	// ErrRead: the reader has read it on the page.
	ErrRead = errors.New("the reader has read it")
	// ErrOvertaken: the reader has a newer notification of the same report, which
	// says what holds now.
	ErrOvertaken = errors.New("there is a newer status of the report")
	// ErrEmpty: what it was about is gone.
	ErrEmpty = errors.New("there is nothing left to tell")
)

// Quiet is the part of the day in which nothing is sent to a reader, in minutes after
// midnight. It may pass midnight; From is in it, and To is not.
type Quiet struct{ From, To int }

// Until returns for how long the quiet hours last that now, in the reader's zone, is
// in; 0 outside of them. Where a clock is changed in between, it is up to an hour more
// or less.
func (q *Quiet) Until(now time.Time) time.Duration {
	if q == nil || q.From == q.To {
		return 0
	}
	const day = 24 * 60
	minute := now.Hour()*60 + now.Minute()
	if since := (minute - q.From + day) % day; since >= (q.To-q.From+day)%day {
		return 0
	}
	left := (q.To - minute + day) % day
	return time.Duration(left)*time.Minute - time.Duration(now.Second())*time.Second
}
