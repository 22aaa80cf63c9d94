// Package imports reads the reports of the system that a city used before, from CSV or JSON
// lines. A file is read as it comes: each fault is named by its line, and a file with one
// has no reports.
package imports

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/text"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// MaxBytes bounds a file: 200,000 reports with a paragraph each.
	MaxBytes = 128 << 20
	// MaxReports bounds how many reports a file has.
	MaxReports = 200_000

	maxLine    = 256 << 10
	maxFaults  = 100 // that are listed
	maxEntries = 100 // of a report's history

	// As in docs/openapi/report-service.yaml.
	maxNumber      = 60
	maxTitle       = 200
	maxDescription = 4000
	maxAddress     = 300
	maxNote        = 2000
)

// A City is what reports are checked against.
type City struct {
	Bounds   *report.Box // nil is the whole globe
	Category func(name string) (c report.Category, ok bool)
	Area     func(*report.Position) report.Area
	Now      time.Time
}

// A Report is one of a file, with its history from the filing on. It has no reporter.
type Report struct {
	Number  string // in the system before
	Filing  report.Filing
	History []report.Change
}

// A File is one without faults.
type File struct {
	Count  int
	city   City
	isCSV  bool
	packed *bytes.Buffer
}

// Read reads a file as it comes. It returns the faults of the file, the first maxFaults of
// them, or else the file. An error is one of the body.
func Read(body io.Reader, isCSV bool, city City) (*File, []service.FieldError, error) {
	// Reports are written in a short transaction once all are good. Until then the file is
	// kept packed, a sixth of its size.
	f := &File{city: city, isCSV: isCSV, packed: new(bytes.Buffer)}
	packer, err := gzip.NewWriterLevel(f.packed, gzip.BestSpeed)
	if err != nil {
		return nil, nil, fmt.Errorf("pack file: %w", err)
	}
	r := &reader{city: city, numbers: make(map[string]int), each: func(Report) bool { f.Count++; return true }}
	err = r.read(io.TeeReader(body, packer), isCSV)
	if err := errors.Join(err, packer.Close()); err != nil {
		return nil, nil, err
	}
	if len(r.faults) > 0 {
		return nil, r.faults[:min(len(r.faults), maxFaults)], nil
	}
	return f, nil, nil
}

// Reports are those of f, in the order of the file.
func (f *File) Reports() iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		r := &reader{city: f.city, numbers: make(map[string]int), each: func(r Report) bool { return yield(r, nil) }}
		unpacked, err := gzip.NewReader(bytes.NewReader(f.packed.Bytes()))
		if err == nil {
			err = r.read(unpacked, f.isCSV)
		}
		if err == nil && len(r.faults) > 0 {
			err = errors.New("a file has faults that it had not")
		}
		if err != nil {
			yield(Report{}, fmt.Errorf("read file again: %w", err))
		}
	}
}

// errEnough ends the reading of a file.
var errEnough = errors.New("enough")

// A reader reads the lines of a file, and collects its faults.
type reader struct {
	city    City
	each    func(Report) bool // takes a report without faults, and tells whether to read on
	numbers map[string]int    // the lines that have them
	count   int
	faults  []service.FieldError

	// The line that is read.
	line   int
	number string
}

// A record is a report as a line has it.
type record struct {
	Number      string   `json:"number"`
	CreatedAt   string   `json:"created_at"`
	UpdatedAt   string   `json:"updated_at"` // of the last status; of a report without a history
	Status      string   `json:"status"`
	Category    string   `json:"category"` // its name in any language, or its number
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Latitude    *float64 `json:"latitude"`
	Longitude   *float64 `json:"longitude"`
	Address     string   `json:"address"`
	History     []entry  `json:"history"` // after the filing
}

type entry struct {
	Status string `json:"status"`
	At     string `json:"at"`
	Note   string `json:"note"`
}

func (r *reader) read(body io.Reader, isCSV bool) error {
	file := bufio.NewReaderSize(body, maxLine)
	if mark, _ := file.Peek(3); string(mark) == "\ufeff" { // as some programs write
		_, _ = file.Discard(len(mark))
	}
	read := r.lines
	if isCSV {
		read = r.rows
	}
	if err := read(file); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// fault adds a fault of the present line.
func (r *reader) fault(code, must string) {
	name := fmt.Sprintf("line %d", r.line)
	if r.number != "" {
		name += fmt.Sprintf(" (%q)", r.number)
	}
	r.faults = append(r.faults, service.FieldError{Pointer: fmt.Sprintf("/lines/%d", r.line), Detail: name + ": " + must, Code: code})
}

// next begins a line, unless the file has enough of them, or of faults.
func (r *reader) next(line int) error {
	r.line, r.number = line, ""
	r.count++
	switch {
	case len(r.faults) >= maxFaults:
		return errEnough
	case r.count > MaxReports:
		r.fault("too-many", fmt.Sprintf("the file must have at most %d reports", MaxReports))
		return errEnough
	}
	return nil
}

// lines reads JSON lines.
func (r *reader) lines(file *bufio.Reader) error {
	for line := 1; ; line++ {
		text, err := file.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			r.line = line
			r.fault("too-long", fmt.Sprintf("must be a line of at most %d bytes: nothing behind it is read", maxLine))
			return errEnough
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			if err := r.next(line); err != nil {
				return err
			}
			if err := r.object(text); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

func (r *reader) object(line []byte) error {
	if !utf8.Valid(line) {
		r.fault("encoding", "must be in UTF-8")
		return nil
	}
	var rec record
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&rec)
	if err == nil && !decoder.More() {
		return r.take(rec)
	}
	wrong, ofType := errors.AsType[*json.UnmarshalTypeError](err)
	unknown, isUnknown := strings.CutPrefix(fmt.Sprint(err), "json: unknown field ")
	switch {
	case ofType && wrong.Field != "":
		r.fault("type", wrong.Field+" must not be "+wrong.Value)
	case isUnknown:
		r.fault("unknown", "must not have a member "+unknown)
	default:
		r.fault("record", "must be one object of JSON")
	}
	return nil
}

// columns are those of CSV; the first five are required.
var columns = []string{"number", "created_at", "status", "category", "title", "description", "latitude", "longitude", "address", "updated_at", "history"}

// rows reads CSV.
func (r *reader) rows(file *bufio.Reader) error {
	table := csv.NewReader(file)
	table.FieldsPerRecord, table.ReuseRecord, table.LazyQuotes = -1, true, true
	head, err := table.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	r.line = 1
	names := make([]string, len(head))
	for i, name := range head {
		names[i] = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(columns, names[i]) || slices.Contains(names[:i], names[i]) {
			r.fault("columns", fmt.Sprintf("column %q must be one of %s, each once, with commas between them", name, strings.Join(columns, ", ")))
		}
	}
	for _, name := range columns[:5] {
		if !slices.Contains(names, name) {
			r.fault("columns", "must name the column "+name)
		}
	}
	if len(r.faults) > 0 {
		return errEnough
	}
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err // of the body: with lazy quotes there is no other
		}
		line, _ := table.FieldPos(0)
		if err := r.next(line); err != nil {
			return err
		}
		if err := r.row(names, row); err != nil {
			return err
		}
	}
}

func (r *reader) row(names, row []string) error {
	switch {
	case !utf8.ValidString(strings.Join(row, "")):
		r.fault("encoding", "must be in UTF-8")
		return nil
	case len(row) != len(names):
		r.fault("cut", fmt.Sprintf("must have %d fields, as the first line; it has %d", len(names), len(row)))
		return nil
	}
	var rec record
	texts := []*string{&rec.Number, &rec.CreatedAt, &rec.Status, &rec.Category, &rec.Title, &rec.Description, nil, nil, &rec.Address, &rec.UpdatedAt, nil}
	faults := len(r.faults)
	for i, name := range names {
		value := row[i]
		switch column := slices.Index(columns, name); {
		case texts[column] != nil:
			*texts[column] = strings.Clone(value) // the row is reused
		case strings.TrimSpace(value) == "":
		case name == "history":
			if err := json.Unmarshal([]byte(value), &rec.History); err != nil {
				r.fault("history", `history must be a list of JSON of objects with "status", "at" and a "note"`)
			}
		default:
			degrees, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				r.fault("position", name+" must be a number with a point")
			} else if name == "latitude" {
				rec.Latitude = &degrees
			} else {
				rec.Longitude = &degrees
			}
		}
	}
	if len(r.faults) > faults {
		return nil
	}
	return r.take(rec)
}

// take checks a record, and hands it on unless it has a fault.
func (r *reader) take(rec record) error {
	faults := len(r.faults)
	r.named(rec.Number)
	status := report.Status(rec.Status)
	if status.Transitions() == nil {
		r.fault("status", "status must be one of pending, in_progress, resolved, rejected")
	}
	category, ok := r.city.Category(strings.TrimSpace(rec.Category))
	if !ok {
		r.fault("category", "category must be the name or the number of a category of the city")
	}
	filing := report.Filing{Report: report.Report{
		ID:    uuid.Must(uuid.NewV7()),
		Title: r.text("title", rec.Title, maxTitle, true, text.CleanLine), Description: r.text("description", rec.Description, maxDescription, false, text.CleanBlock),
		Address:  r.text("address", rec.Address, maxAddress, false, text.CleanLine),
		Category: category, Privacy: report.Anonymous, Visibility: report.ForEverybody, Status: status,
	}}
	switch {
	case (rec.Latitude == nil) != (rec.Longitude == nil):
		r.fault("position", "latitude and longitude must come together")
	case rec.Latitude != nil:
		place, code, must := report.PlaceIn(r.city.Bounds, *rec.Latitude, *rec.Longitude)
		if filing.Position = place; place == nil {
			r.fault(code, must)
		}
	}
	filing.Area = r.city.Area(filing.Position)
	changes := r.history(rec)
	if len(r.faults) > faults {
		return nil
	}
	last := changes[len(changes)-1]
	filing.CreatedAt, filing.UpdatedAt, filing.Version = changes[0].At, last.At, last.Version
	if !r.each(Report{rec.Number, filing, changes}) {
		return errEnough
	}
	return nil
}

// named checks the number of the present line.
func (r *reader) named(number string) {
	switch other, twice := r.numbers[number]; {
	case number == "" || utf8.RuneCountInString(number) > maxNumber || number != strings.TrimSpace(number) || text.CheckID(number) != nil:
		r.fault("number", "number must be 1 to 60 characters of one line, without spaces around them")
	case twice:
		r.number = number
		r.fault("number-twice", fmt.Sprintf("number must not be that of line %d", other))
	default:
		r.number = number
		r.numbers[number] = r.line
	}
}

// text returns a text of the present line without what nobody sees.
func (r *reader) text(name, s string, most int, required bool, clean func(string) string) string {
	if err := text.CheckKept(s); err != nil {
		r.fault(name, name+" "+err.Error())
		return ""
	}
	switch s = clean(s); {
	case required && !text.Visible(s):
		r.fault(name, name+" must not be blank")
	case utf8.RuneCountInString(s) > most:
		r.fault(name, fmt.Sprintf("%s must have at most %d characters", name, most))
	}
	return s
}

// history returns the changes of a report from its filing on.
func (r *reader) history(rec record) []report.Change {
	filed := r.time("created_at", rec.CreatedAt, time.Time{})
	changes := []report.Change{{To: report.Pending, Version: 1, At: filed}}
	if rec.History == nil && rec.Status != string(report.Pending) && report.Status(rec.Status).Transitions() != nil {
		if rec.UpdatedAt == "" {
			r.fault("updated_at", "updated_at or history must be there: the report is no longer pending")
			return changes
		}
		rec.History = []entry{{Status: rec.Status, At: rec.UpdatedAt}}
	} else if rec.UpdatedAt != "" {
		r.fault("updated_at", "updated_at must be left out: the last time of the history is it")
	}
	if len(rec.History) > maxEntries {
		r.fault("history", fmt.Sprintf("history must have at most %d entries", maxEntries))
		return changes
	}
	for i, e := range rec.History {
		name, before := fmt.Sprintf("history[%d].", i), changes[i]
		change := report.Change{
			From: before.To, To: report.Status(e.Status), Version: before.Version + 1,
			At: r.time(name+"at", e.At, before.At), Note: r.text(name+"note", e.Note, maxNote, e.Status == string(before.To), text.CleanBlock),
		}
		if change.To.Transitions() == nil {
			r.fault("status", name+"status must be one of pending, in_progress, resolved, rejected")
		}
		changes = append(changes, change)
	}
	if last := changes[len(changes)-1].To; len(rec.History) > 0 && string(last) != rec.Status {
		r.fault("history", "history must end with the status of the report")
	}
	return changes
}

// time reads a time that is not before another, and not to come.
func (r *reader) time(name, s string, notBefore time.Time) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil || t.Year() < 1970:
		r.fault("time", name+" must be a time with its zone, as 2024-03-01T09:30:00+07:00")
		return notBefore
	case t.After(r.city.Now):
		r.fault("time", name+" must not be in the future")
	case t.Before(notBefore):
		r.fault("time", name+" must not be before the time before it")
	}
	return t.UTC().Truncate(time.Microsecond)
}
