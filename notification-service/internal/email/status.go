package email

import "time"

// Others is the lane of all hosts where fewer than crowd.Size people have an
// address, and of those without a name, for operators.
const Others = "others"

// StuckAfter is how long a mail may be due before it counts as stuck: a host that
// defers strangers takes their mails after a few minutes.
const StuckAfter = 15 * time.Minute

// Figures are what operators see of mails, rounded so that nobody is found by
// them, see package crowd. Neither rates, failures and circuits of a lane nor when
// it last took a mail are among them: a single mail changes those.
type Figures struct {
	AsOf    time.Time // the full hour: later mails are not counted
	Lanes   []LaneStatus
	Bounces []BounceCount
}

// A LaneStatus is how the mails to one host are, or those to Others.
type LaneStatus struct {
	Lane    string
	Waiting int        // people whose mails are stuck
	Since   *time.Time // the hour, if any are
}

// A BounceCount is to how many people at a host mails bounced with a code.
type BounceCount struct {
	Lane   string
	Code   string
	Hard   bool
	People int
}
