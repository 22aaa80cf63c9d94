package open311

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A format is that of an answer, by the end of the path.
type format string

// The formats. Who asks for none gets XML, as the errors of Open311 are.
const (
	asXML  format = "xml"
	asJSON format = "json"
)

// formats is the end of a route.
const formats = ".{format:(xml|json)}"

// formatOf returns the format that r asks for, at a path that exists or not.
func formatOf(r *http.Request) format {
	if strings.HasSuffix(r.URL.Path, "."+string(asJSON)) {
		return asJSON
	}
	return asXML
}

// contentType has no charset: the public validator compares it as a whole.
func (f format) contentType() string {
	if f == asJSON {
		return "application/json"
	}
	return "text/xml"
}

func (f format) encode(content any) ([]byte, error) {
	var body bytes.Buffer
	var err error
	if f == asJSON {
		err = json.NewEncoder(&body).Encode(content)
	} else {
		body.WriteString(`<?xml version="1.0" encoding="utf-8"?>` + "\n")
		err = xml.NewEncoder(&body).Encode(content)
		body.WriteByte('\n')
	}
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return body.Bytes(), nil
}

// items are a list: in JSON an array, in XML elements of one name within a root.
type items[T any] struct {
	root, item string
	all        []T
}

// MarshalJSON returns an array, also of nothing.
func (l items[T]) MarshalJSON() ([]byte, error) {
	if l.all == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(l.all)
}

// MarshalXML writes the root with its elements.
func (l items[T]) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	start.Name.Local = l.root
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for _, each := range l.all {
		if err := e.EncodeElement(each, xml.StartElement{Name: xml.Name{Local: l.item}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

// An optional is a text that is null in JSON and an empty element in XML if there is none.
type optional string

// MarshalJSON returns the text, or null.
func (o optional) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}

// A degree is a number that is missing without a position, as an optional is.
type degree struct{ value *float64 }

// MarshalJSON returns the number, or null.
func (d degree) MarshalJSON() ([]byte, error) { return json.Marshal(d.value) }

// MarshalText returns the number without an exponent, which few readers of XML know, or
// nothing.
func (d degree) MarshalText() ([]byte, error) {
	if d.value == nil {
		return nil, nil
	}
	return strconv.AppendFloat(nil, *d.value, 'f', -1, 64), nil
}

// printable returns s without what XML 1.0 cannot say, and encoding/xml would replace.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\uFFFE' || r == '\uFFFF' {
			return -1
		}
		return r
	}, s)
}

// w3c writes a time as clients of Open311 read it, in whole seconds.
func w3c(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// A failure is an error of Open311.
type failure struct {
	Code        int    `xml:"code" json:"code"`
	Description string `xml:"description" json:"description"`
}
