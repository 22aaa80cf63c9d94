// Package failure says what becomes of a message that could not be handled:
// the class of the failure, and the headers that retries, dead letters and
// replays carry.
//
// It promises that no text it writes quotes a message or a row: errors of
// parsers and databases do, and a dead letter is read by operators.
package failure

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Class sorts failures by what helps against them.
type Class string

// The classes of failure.
const (
	// Permanent will fail every time: only a changed message or program helps.
	Permanent Class = "permanent"
	// Transient may succeed later.
	Transient Class = "transient"
	// Away means that the database, or something else without which an effect
	// cannot be had, cannot be used at all, or refuses what no message has caused.
	// The message waits, and no attempt is spent on it.
	Away Class = "away"
	// Postponed means that it is not the message's turn: what it needs is taken by
	// others. It is handled after some seconds, behind what waits in its queue, and no
	// attempt is spent on it.
	Postponed Class = "postponed"
	// Panicked means that the program broke on the message. It is retried,
	// because the next program may not.
	Panicked Class = "panic"
	// Poison means that the process died each time the message was started.
	Poison Class = "poison"
	// Foreign marks a dead letter that the broker or another program made: it
	// carries no reason of ours.
	Foreign Class = "foreign"
)

// Retryable reports whether another attempt makes sense.
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

// Refuse returns the permanent error that text describes, which must be safe to
// show: the message is a dead letter at once.
func Refuse(text string) *Error { return &Error{Class: Permanent, Text: text} }

// Classify returns the class of err, which is not nil. What it does not know
// is Transient: a mistake there costs some attempts, while the other mistake
// costs a message. What the database says is the message's only in the classes of
// SQLSTATE that are about data.
func Classify(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	switch pgpool.Classify(err) {
	case pgpool.Away:
		return Away
	case pgpool.Busy:
		// A cancelled statement, or the limit of its time, concerns all messages. A
		// lock or a conflict may be about this one.
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "57014" {
			return Away
		}
	case pgpool.Permanent:
		return Permanent
	}
	return Transient
}

// Describe returns a text for err that quotes neither a message nor a row.
func Describe(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Text
	}
	if text := pgpool.Describe(err); text != "" {
		return text
	}
	root := err
	for next := err; next != nil; next = errors.Unwrap(next) {
		root = next
	}
	return fmt.Sprintf("internal error of type %T", root)
}

// Undecodable returns the permanent error of a body that event.Decode
// refused. It names the field at fault and never its value.
func Undecodable(err error) *Error {
	text := "body breaks the contract"
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		text = fmt.Sprintf("body is not valid JSON at byte %d", e.Offset)
	} else if e, ok := errors.AsType[*event.FieldError](err); ok {
		text += fmt.Sprintf(": %s: must be %s", e.Field, e.Must)
	}
	return &Error{Class: Permanent, Text: text, Err: err}
}
