package config

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A CityName is what a city calls itself, on the page and in mails.
type CityName string

// maxCityName fits the header of a phone, and a mail's sender.
const maxCityName = 60

// Must says what a name looks like.
func (CityName) Must() string { return "a name of up to 60 characters without < and >" }

// UnmarshalText reads a name.
func (n *CityName) UnmarshalText(text []byte) error {
	if utf8.RuneCount(text) > maxCityName || strings.ContainsAny(string(text), "<>") {
		return errors.New("must be " + n.Must())
	}
	*n = CityName(text)
	return nil
}

// Languages are the languages of a city's residents, by ISO 639 code; the city's first
// one comes first.
type Languages []string

// maxLanguages bounds what an operator has to write of a category.
const maxLanguages = 10

var languageCode = regexp.MustCompile(`^[a-z]{2,3}$`)

// Must says what a list of languages looks like.
func (Languages) Must() string {
	return "up to 10 codes of languages (ISO 639), each once, joined by commas"
}

// UnmarshalText reads codes that are separated by commas.
func (l *Languages) UnmarshalText(text []byte) error {
	var all Languages
	for code := range strings.SplitSeq(string(text), ",") {
		code = strings.TrimSpace(code)
		if !languageCode.MatchString(code) || slices.Contains(all, code) || len(all) == maxLanguages {
			return errors.New("must be " + l.Must())
		}
		all = append(all, code)
	}
	*l = all
	return nil
}

// CityLinks are where a city has what the law asks for, and whom to call in an
// emergency. What a city does not name is empty.
type CityLinks struct {
	Privacy       string `json:"privacy,omitempty"`       // the privacy notice
	Imprint       string `json:"imprint,omitempty"`       // who is responsible
	Accessibility string `json:"accessibility,omitempty"` // the accessibility statement
	Terms         string `json:"terms,omitempty"`         // the terms of use
	Contact       string `json:"contact,omitempty"`       // a page with ways to reach the city
	Emergency     string `json:"emergency,omitempty"`     // a telephone number
}

// telephone is a number as people write it.
var telephone = regexp.MustCompile(`^\+?[0-9](?:[0-9 -]{0,18}[0-9])?$`)

// Must says what links look like.
func (CityLinks) Must() string {
	return "privacy, imprint, accessibility, terms and contact with a URL each (a comma in it as %2C) and emergency with a telephone number, joined by commas, each at most once"
}

// UnmarshalText reads pairs of a name and a value, joined by commas.
func (l *CityLinks) UnmarshalText(text []byte) error {
	var read CityLinks
	fields := map[string]*string{
		"privacy": &read.Privacy, "imprint": &read.Imprint, "accessibility": &read.Accessibility, "terms": &read.Terms, "contact": &read.Contact,
		"emergency": &read.Emergency,
	}
	for pair := range strings.SplitSeq(string(text), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		field := fields[name]
		good := isLink
		if name == "emergency" {
			good = telephone.MatchString
		}
		if field == nil || *field != "" || !good(value) {
			return errors.New("must be " + l.Must())
		}
		*field = value
	}
	*l = read
	return nil
}

// isLink reports whether residents may be sent to an address.
func isLink(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && len(address) <= 500
}
