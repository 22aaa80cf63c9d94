// Package fault has the one type of error that a client may see.
//
// Any other error is ours alone: it is logged, and the client reads only
// "internal error". platform/service maps kinds to status codes.
package fault

import "errors"

// A Kind is a class of failures that a client can distinguish. Each
// domain package declares its own.
type Kind string

// The kinds that every domain knows.
const (
	// Invalid input breaks a rule; Field names it.
	Invalid Kind = "invalid"
	// NotFound means that there is no such thing, or none that the client may know of.
	NotFound Kind = "not found"
	// Conflict means that the thing is in no state for the request.
	Conflict Kind = "conflict"
	// Unavailable may succeed later, without any change to the request.
	Unavailable Kind = "unavailable"
)

// An Error is a failure that the client may see.
type Error struct {
	Kind  Kind
	Msg   string // for the client
	Field string // the value at fault, for Invalid: a JSON pointer into the body, or a parameter's name
	Err   error  // for the log alone, may be nil
}

// New returns an Error of kind with msg for the client.
func New(kind Kind, msg string) *Error { return &Error{Kind: kind, Msg: msg} }

// NewInvalid returns an Error of kind Invalid that blames field.
func NewInvalid(field, msg string) *Error { return &Error{Kind: Invalid, Msg: msg, Field: field} }

// Error returns the message for the log.
func (e *Error) Error() string {
	msg := e.Msg
	if e.Field != "" {
		msg = e.Field + ": " + msg
	}
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err, or "" if err is not for the client.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
