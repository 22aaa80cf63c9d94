package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// JSON returns the one value that text is. Its numbers are json.Number, so that they
// can be written as they were read. Anything behind the value is an error.
func JSON(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return value, nil
}
