package api

import (
	"errors"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// formats are the formats of strings that the document names, with what says
// why a string is not of that form.
var formats = map[string]func(string) error{
	"uuid":     isUUID,
	"bbox":     func(s string) error { _, err := report.ParseBox(s); return err },
	"cursor":   func(s string) error { _, err := report.ParseCursor(s); return err },
	"if-match": func(s string) error { _, err := report.ParseIfMatch(s); return err },
}

func formatOptions() []openapi3.SchemaValidationOption {
	var options []openapi3.SchemaValidationOption
	for name, check := range formats {
		options = append(options, openapi3.WithStringFormatValidator(name, openapi3.NewCallbackValidator(check)))
	}
	return options
}

func isUUID(s string) error {
	if _, err := uuid.Parse(s); err != nil || len(s) != 36 { // Parse takes other notations, too
		return errors.New("want a UUID, such as 0198c0de-0000-7000-8000-000000000001")
	}
	return nil
}
