package outcome

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// contractFields are the fields that an error may name. Whatever else stands
// in the error of a decoder may be a piece of the message.
var contractFields = []string{
	"report_id", "report_version", "report_title", "new_status", "reporter_id", "reporter_name",
	"note", "category_id", "category_name", "privacy_level", "voter_id", "vote_type", "new_score", "timestamp",
}

// Undecodable returns the permanent error of a body that event.Decode
// refused. It names the field at fault and never its value.
func Undecodable(err error) *Error {
	return &Error{Class: Permanent, Text: describeDecode(err), Err: err}
}

func describeDecode(err error) string {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("body is not valid JSON at byte %d", e.Offset)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("body breaks the contract: %s has the wrong type", knownField(e.Field))
	}
	for _, segment := range strings.Split(err.Error(), ": ") {
		if field := knownField(segment); field != unknownField {
			return fmt.Sprintf("body breaks the contract: %s is missing or invalid", field)
		}
	}
	return "body breaks the contract"
}

const unknownField = "a field"

func knownField(name string) string {
	if slices.Contains(contractFields, name) {
		return name
	}
	return unknownField
}
