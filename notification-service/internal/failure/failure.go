// Package failure says what becomes of a message that could not be handled,
// and how the message itself tells its story on the way: the class of the
// failure, and the headers that retries, dead letters and replays carry.
//
// It promises that no text it writes quotes a message or a row: errors of
// parsers and databases do, and a dead letter is read by operators.
package failure

// A Class sorts failures by what helps against them.
type Class string

// The classes of failure.
const (
	// Permanent will fail every time: only a changed message or program helps.
	Permanent Class = "permanent"
	// Transient may succeed later.
	Transient Class = "transient"
	// Away means that the database cannot be used at all. It is nobody's
	// failure: the message waits, and no attempt is spent on it.
	Away Class = "away"
	// Panicked means that the program broke on the message. It is retried,
	// because the next program may not.
	Panicked Class = "panic"
	// Poison means that the process died each time the message was started.
	Poison Class = "poison"
	// Foreign marks a dead letter that the broker or another program made: it
	// carries no reason of ours.
	Foreign Class = "foreign"
)

// Retryable tells whether another attempt makes sense.
func (c Class) Retryable() bool { return c == Transient || c == Panicked }

// An Error is a failure whose class and text are decided. Text is safe to
// store and to show; Err, which may quote anything, is not.
type Error struct {
	Class Class
	Text  string
	Err   error
}

// Error returns the text that is safe to show.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
