package failure

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cityconnect/cityconnect/platform/event"
)

// Undecodable returns the permanent error of a body that event.Decode
// refused. It names the field at fault and never its value.
func Undecodable(err error) *Error {
	return &Error{Class: Permanent, Text: describeDecode(err), Err: err}
}

func describeDecode(err error) string {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("body is not valid JSON at byte %d", e.Offset)
	}
	if e, ok := errors.AsType[*event.FieldError](err); ok {
		return fmt.Sprintf("body breaks the contract: %s: want %s", e.Field, e.Want)
	}
	return "body breaks the contract"
}
