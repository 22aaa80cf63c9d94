package openapi

import (
	"errors"
	"maps"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/text"
)

// Formats are the formats of strings that a document names. Each returns an error that
// says to the client why a string is not of that form.
type Formats map[string]func(string) error

// with returns f and what every document may name: uuid, date-time, line and text.
func (f Formats) with() Formats {
	all := Formats{"uuid": isUUID, "date-time": isTime, "line": text.CheckLine, "text": text.CheckBlock}
	maps.Copy(all, f)
	return all
}

// options are how what a request contains is compared with its schema.
func (f Formats) options() *openapi3filter.Options {
	options := &openapi3filter.Options{MultiError: true}
	for name, check := range f {
		options.SchemaValidationOptions = append(options.SchemaValidationOptions,
			openapi3.WithStringFormatValidator(name, openapi3.NewCallbackValidator(check)))
	}
	return options
}

func isUUID(s string) error {
	if _, err := uuid.Parse(s); err != nil || len(s) != 36 { // Parse takes other notations, too
		return errors.New("must be a UUID, such as 0198c0de-0000-7000-8000-000000000001")
	}
	return nil
}

// isTime takes what the handlers can read. kin-openapi's own check takes the 30th
// of February, too.
func isTime(s string) error {
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return errors.New("must be a time as in RFC 3339, such as 2026-11-22T08:00:00Z")
	}
	return nil
}
