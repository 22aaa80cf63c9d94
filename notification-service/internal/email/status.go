package email

import "time"

// A LaneStatus is how the mails to one host are, for operators.
type LaneStatus struct {
	Lane          string
	Waiting       int64
	OldestDueAt   *time.Time // of what waits
	Rate          float64    // mails a second that the host takes; 0 is any
	Failures      int32      // in a row
	OpenUntil     *time.Time // nothing is sent there until then
	LastSuccessAt *time.Time
	LastFailureAt *time.Time
}

// A BounceCount is how often mails to a host bounced with a code.
type BounceCount struct {
	Lane  string
	Code  string
	Hard  bool
	Count int64
}
