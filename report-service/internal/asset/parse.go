// Package asset reads files of a city's things, such as lamps and bins, and draws sheets of
// codes to be stuck on them.
package asset

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/text"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// MaxBytes bounds a file: 200,000 features of GeoJSON with some properties of the city's own.
	MaxBytes = 64 << 20
	// MaxAssets bounds how many things a file has.
	MaxAssets = 200_000

	maxName   = 120
	maxFaults = 100 // that are listed
)

// A Thing is a record of a file.
type Thing struct {
	Code, Name string
	Position   report.Position
}

// Read reads a file as it comes, of things within a city; nil is the whole globe. It returns
// the faults of the file, the first maxFaults of them, or else its things. An error is one
// of the body.
func Read(body io.Reader, isCSV bool, city *report.Box) ([]Thing, []service.FieldError, error) {
	r := &reader{city: city, codes: make(map[string]int)}
	file := bufio.NewReaderSize(body, 64<<10)
	if mark, _ := file.Peek(3); string(mark) == "\ufeff" { // as some programs write
		_, _ = file.Discard(len(mark))
	}
	read := r.features
	if isCSV {
		read = r.lines
	}
	if err := read(file); err != nil && !errors.Is(err, errEnough) {
		return nil, nil, err
	}
	return r.things, r.faults[:min(len(r.faults), maxFaults)], nil
}

// errEnough ends the reading of a file with maxFaults or with a fault that hides the rest.
var errEnough = errors.New("enough faults")

// A reader collects the things and the faults of a file.
type reader struct {
	city   *report.Box
	codes  map[string]int // the records that have them
	things []Thing
	faults []service.FieldError

	// The record that is read.
	number  int // from 1
	pointer string
	code    string
}

// fault adds a fault of the present record.
func (r *reader) fault(code, steps, must string) {
	name := fmt.Sprintf("record %d", r.number)
	if r.code != "" {
		name += fmt.Sprintf(" (%q)", r.code)
	}
	r.faults = append(r.faults, service.FieldError{Pointer: r.pointer + steps, Detail: name + ": " + must, Code: code})
}

// whole adds a fault of the whole file, whose rest is not read.
func (r *reader) whole(pointer, code, must string) error {
	r.faults = append(r.faults, service.FieldError{Pointer: pointer, Detail: must, Code: code})
	return errEnough
}

// next begins a record, unless the file has enough of them, or of faults.
func (r *reader) next(pointer string) error {
	r.number++
	r.pointer, r.code = pointer, ""
	switch {
	case len(r.faults) >= maxFaults:
		return errEnough
	case r.number > MaxAssets:
		return r.whole(pointer, "too-many", fmt.Sprintf("must be at most %d records", MaxAssets))
	}
	return nil
}

const mustBeCollection = `the file must be a FeatureCollection of GeoJSON (RFC 7946) in UTF-8, with "features"`

// features reads a FeatureCollection. Members beside the features are skipped.
func (r *reader) features(file io.Reader) error {
	decoder := json.NewDecoder(file)
	collection, features := "", false
	err := func() error {
		if first, err := decoder.Token(); err != nil {
			return err
		} else if first != json.Delim('{') {
			return r.whole("/type", "collection", mustBeCollection)
		}
		for decoder.More() {
			member, err := decoder.Token()
			switch {
			case err != nil:
			case member == "type":
				err = decoder.Decode(&collection)
			case member == "features":
				features = true
				err = r.list(decoder)
			default:
				var skipped json.RawMessage
				err = decoder.Decode(&skipped)
			}
			if err != nil {
				return err
			}
		}
		_, err := decoder.Token()
		return err
	}()
	_, ofJSON := errors.AsType[*json.SyntaxError](err)
	_, ofType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case ofJSON || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		if r.number == 0 {
			return r.whole("/type", "collection", mustBeCollection)
		}
		r.code = ""
		r.fault("cut", "", "the file is broken here or ends: nothing behind it is read")
	case err != nil && !ofType:
		return err
	case ofType || collection != "FeatureCollection" || !features:
		return r.whole("/type", "collection", mustBeCollection)
	}
	return nil
}

// list reads the features.
func (r *reader) list(decoder *json.Decoder) error {
	if begin, err := decoder.Token(); err != nil {
		return err
	} else if begin != json.Delim('[') {
		return r.whole("/features", "collection", mustBeCollection)
	}
	for decoder.More() {
		if err := r.next(fmt.Sprintf("/features/%d", r.number)); err != nil {
			return err
		}
		var record json.RawMessage
		if err := decoder.Decode(&record); err != nil {
			return err
		}
		r.feature(record)
	}
	_, err := decoder.Token()
	return err
}

func (r *reader) feature(record json.RawMessage) {
	var f struct {
		Type     string `json:"type"`
		Geometry struct {
			Type        string          `json:"type"`
			Coordinates json.RawMessage `json:"coordinates"`
		} `json:"geometry"`
		Properties struct {
			Code any     `json:"code"` // a text, or a number without a fraction
			Name *string `json:"name"`
		} `json:"properties"`
	}
	if !utf8.Valid(record) {
		r.fault("encoding", "", "must be in UTF-8")
		return
	}
	if err := json.Unmarshal(record, &f); err != nil || f.Type != "Feature" {
		r.fault("record", "", `must be a Feature of GeoJSON, with "geometry" and with "code" and a "name" as texts in "properties"`)
		return
	}
	code, _ := f.Properties.Code.(string)
	if number, ok := f.Properties.Code.(float64); ok && number == math.Trunc(number) && math.Abs(number) < 1<<53 {
		code = strconv.FormatFloat(number, 'f', -1, 64)
	}
	r.named("/properties/code", code)
	name := ""
	if f.Properties.Name != nil {
		name = r.name("/properties/name", *f.Properties.Name)
	}
	var place []float64
	switch {
	case f.Geometry.Type != "Point":
		r.fault("geometry", "/geometry/type", "geometry must be a Point")
	case json.Unmarshal(f.Geometry.Coordinates, &place) != nil || len(place) < 2:
		r.fault("position", "/geometry/coordinates", "must be a longitude and a latitude, in this order")
	default:
		r.add(name, "/geometry/coordinates", place[1], place[0])
	}
}

// lines reads CSV.
func (r *reader) lines(file io.Reader) error {
	table := csv.NewReader(file)
	table.FieldsPerRecord, table.ReuseRecord, table.LazyQuotes = -1, true, true
	columns := 0
	for {
		row, err := table.Read()
		switch {
		case errors.Is(err, io.EOF) && columns > 0:
			return nil
		case err != nil && !errors.Is(err, io.EOF):
			return err // of the body: with lazy quotes there is no other
		case columns == 0:
			header := strings.ToLower(strings.ReplaceAll(strings.Join(row, ","), " ", ""))
			if !slices.Contains([]string{"code,lat,lng", "code,lat,lng,name"}, header) {
				return r.whole("/lines/1", "columns", "the first line must be code,lat,lng,name or code,lat,lng, in UTF-8 and with commas")
			}
			columns = len(row)
			continue
		}
		line, _ := table.FieldPos(0)
		if err := r.next(fmt.Sprintf("/lines/%d", line)); err != nil {
			return err
		}
		r.row(row, columns)
	}
}

func (r *reader) row(row []string, columns int) {
	switch {
	case !utf8.ValidString(strings.Join(row, "")):
		r.fault("encoding", "", "must be in UTF-8")
		return
	case len(row) != columns:
		r.fault("cut", "", fmt.Sprintf("must have %d fields, as the first line; it has %d", columns, len(row)))
		return
	}
	code, name := strings.TrimSpace(row[0]), ""
	r.named("", code)
	if columns > 3 {
		name = r.name("", row[3])
	}
	latitude, err := strconv.ParseFloat(strings.TrimSpace(row[1]), 64)
	longitude, err2 := strconv.ParseFloat(strings.TrimSpace(row[2]), 64)
	if err != nil || err2 != nil {
		r.fault("position", "", "lat and lng must be numbers with a point")
		return
	}
	r.add(name, "", latitude, longitude)
}

var codeForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// named checks the code of the present record.
func (r *reader) named(steps, code string) {
	switch other, twice := r.codes[code]; {
	case !codeForm.MatchString(code):
		r.fault("code", steps, "code must be 1 to 40 letters, digits, dots, hyphens and underscores, and begin with a letter or a digit")
	case twice:
		r.code = code
		r.fault("code-twice", steps, fmt.Sprintf("code must not be that of record %d", other))
	default:
		r.code = strings.Clone(code)
		r.codes[r.code] = r.number
	}
}

// name returns the name of the present record, which is a line.
func (r *reader) name(steps, name string) string {
	clean := text.CleanLine(name)
	if clean == "" || utf8.RuneCountInString(clean) > maxName || text.CheckKept(name) != nil {
		r.fault("name", steps, fmt.Sprintf("name must be a line of 1 to %d characters, or be left out", maxName))
	}
	return strings.Clone(clean)
}

// add adds a thing at a place in the city.
func (r *reader) add(name, steps string, latitude, longitude float64) {
	place, code, must := report.PlaceIn(r.city, latitude, longitude)
	if place == nil {
		r.fault(code, steps, must)
		return
	}
	r.things = append(r.things, Thing{r.code, name, *place})
}
