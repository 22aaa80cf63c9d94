package report

import "errors"

// A Kind is a class of failures that the client may be told about.
type Kind string

// The kinds of failures.
const (
	Invalid           Kind = "invalid"
	NotFound          Kind = "not found"
	OwnReport         Kind = "own report"
	Closed            Kind = "closed"
	IllegalTransition Kind = "illegal transition"
	Stale             Kind = "stale"
	KeyReused         Kind = "key reused"
	StillRunning      Kind = "still running"
	Unavailable       Kind = "unavailable"
)

// An Error is a failure that the client may be told about. Any other error is
// ours alone: it is logged, and the client reads only "internal error".
type Error struct {
	Kind  Kind
	Msg   string // for the client
	Field string // the member of the input that is wrong, for Invalid
	Err   error  // for the log, may be nil
}

// Error returns the message for the log.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Msg + ": " + e.Err.Error()
	}
	return e.Msg
}

// Unwrap returns what e was made from.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err, or "" if err is not for the client.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// NoReport is the failure that there is no such report.
func NoReport() error { return &Error{Kind: NotFound, Msg: "there is no such report"} }
