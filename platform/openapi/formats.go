package openapi

import (
	"errors"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/text"
)

// Formats are the formats of strings that a document names. Each returns an error that
// says to the client why a string is not of that form.
type Formats map[string]func(string) error

// with returns f and what every document may name: uuid, date-time, line, text, code (of
// letters and digits) and bare (an address, say), which are tidied, and id, which is
// compared as it is.
func (f Formats) with() Formats {
	all := Formats{"uuid": isUUID, "date-time": isTime, "line": text.CheckKept, "text": text.CheckKept, "code": text.CheckKept, "bare": text.CheckKept, "id": text.CheckID}
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

// tidyForms return strings of some formats in the form that is checked and that
// handlers read: what carries no meaning refuses nobody.
var tidyForms = map[string]func(string) string{
	"line":      func(s string) string { return strings.TrimSpace(text.CleanLine(s)) },
	"code":      text.Code,
	"bare":      text.Bare,
	"text":      text.CleanBlock,
	"date-time": tidyTime,
}

// looseTime has the spellings of a time that RFC 3339 (5.6) allows for, a zone without a
// colon, as strftime writes it, and one whose + was not encoded in a query, where it means a
// space.
var looseTime = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)(?:([Zz])|([-+ ])([0-9]{2}):?([0-9]{2}))$`)

// tidyTime returns s in the one spelling of a time that package time reads.
func tidyTime(s string) string {
	s = strings.TrimSpace(s)
	parts := looseTime.FindStringSubmatch(s)
	if parts == nil {
		return s
	}
	zone := strings.ToUpper(parts[3])
	if zone == "" {
		zone = strings.Replace(parts[4], " ", "+", 1) + parts[5] + ":" + parts[6]
	}
	return parts[1] + "T" + parts[2] + zone
}

// isTime takes what the handlers can read. kin-openapi's own check takes the 30th
// of February, too.
func isTime(s string) error {
	if t, err := time.Parse(time.RFC3339, s); err != nil || t.Year() < 1 { // which the database does not take
		return errors.New("must be a time with its zone as in RFC 3339, such as 2026-11-22T08:00:00Z or 2026-11-22T15:00:00+07:00, whose + is %2B in a URL")
	}
	return nil
}
