package report

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"
)

// A Filter says which reports a list shows. Its zero value shows all.
type Filter struct {
	Statuses   []Status // any of them
	Categories []int32  // any of them
	Areas      []string // the codes of any of them
	Asset      string   // the key of the thing that it is about
	Box        *Box
	Words      []string    // each of them, or a word that begins with it
	IDs        []uuid.UUID // any of them
	Reporter   string      // only this user's
	Order      Order

	// For officials only.
	Official           bool      // with reports that only the city sees
	Scope              Scope     // only reports in it
	Departments        []int32   // in charge of it; any of them
	Assignee           *string   // this official's; "" is nobody's
	FiledFrom, FiledTo time.Time // from one on, before the other; zero for no bound
	Overdue            int       // at this level or a higher one, and open; 0 for all
	Hidden             bool      // only reports that officials have hidden; otherwise none, except a reporter's own
	Withdrawn          bool      // only withdrawn reports, likewise
	NewComments        bool      // only with comments that no official has seen
	Waiting            bool      // only with an open question to the reporter
	Unanswered         bool      // only those whose question was not answered in time
	Disputed           bool      // only those that are not fixed, as their reporters say
	Sources            []Source  // that officials filed for somebody, and that came by any of them
	Unpinned           bool      // disputed reports are in their place, and not before all others
}

// Pinned returns the filter of the reports that come before all others of f's queue.
func (f Filter) Pinned() Filter {
	f.Disputed = true
	return f
}

// An Order is the order of a list. The sort key may change while a client turns
// the pages, except for the time of filing: then a report may appear twice, or
// not at all.
type Order string

// The orders. Newest and Oldest sort by the time of filing, Changed has the
// latest change first, Score the most votes, and Due what is due next, with
// reports without a deadline at the end.
const (
	Newest  Order = "newest" // and the zero value
	Oldest  Order = "oldest"
	Changed Order = "changed"
	Score   Order = "score"
	Due     Order = "due"
)

// noDue stands for a missing deadline; it sorts behind all others.
var noDue = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Costly reports whether a list of f may read most of the reports: no index has
// everything that it asks for. A user's own reports are few.
func (f Filter) Costly() bool {
	if len(f.Words) > 0 || f.Box != nil || len(f.Areas) > 0 || len(f.Departments) > 0 || f.Overdue > 0 || !f.Scope.City() {
		return true
	}
	byTime := f.Order == "" || f.Order == Newest || f.Order == Oldest
	return !byTime && f.Reporter == ""
}

// List returns a number that identifies the list that f shows: equal filters
// and orders have the same number. It depends on whether the list is of one
// user's reports, but not on the user.
func (f Filter) List() uint32 {
	statuses, categories := slices.Sorted(slices.Values(f.Statuses)), slices.Sorted(slices.Values(f.Categories))
	sum := fnv.New32a()
	_, _ = fmt.Fprintf(sum, "%q %d %v %q %t %t", statuses, categories, f.Box, f.Words, f.Reporter != "", f.Order == Oldest)
	if len(f.Departments) > 0 || f.Assignee != nil || !f.FiledFrom.IsZero() || !f.FiledTo.IsZero() || f.Overdue > 0 || f.Order == Changed || f.Order == Score || f.Order == Due {
		assignee := "anyone"
		if f.Assignee != nil {
			assignee = strconv.Quote(*f.Assignee)
		}
		_, _ = fmt.Fprintf(sum, " %d %s %d %d %s", slices.Sorted(slices.Values(f.Departments)), assignee,
			f.FiledFrom.UnixMicro(), f.FiledTo.UnixMicro(), f.Order)
	}
	mark := func(asked bool, format string, args ...any) {
		if asked {
			_, _ = fmt.Fprintf(sum, format, args...)
		}
	}
	mark(len(f.Areas) > 0, " areas %q", slices.Sorted(slices.Values(f.Areas)))
	mark(f.Asset != "", " asset %s", f.Asset)
	mark(len(f.IDs) > 0, " ids %q", f.IDs)
	mark(f.Overdue > 0, " overdue %d", f.Overdue)
	mark(f.Hidden, " hidden")
	mark(f.Withdrawn, " withdrawn")
	mark(f.NewComments, " new comments")
	mark(f.Waiting, " waiting")
	mark(f.Unanswered, " unanswered")
	mark(f.Disputed, " disputed")
	mark(len(f.Sources) > 0, " sources %q", slices.Sorted(slices.Values(f.Sources)))
	return sum.Sum32()
}

// A Page is a part of a list.
type Page struct {
	Reports []View
	Next    *Cursor  // nil on the last
	Figures *Figures // nil unless they were asked for
}

// Figures say what becomes of the reports that everybody sees.
type Figures struct {
	Open     int64          // pending or in progress
	Resolved int64          // in this month, and so still
	Median   *time.Duration // from filing to being resolved, of the last FiguresDays; nil without one
}

// FiguresDays is of how many days the median of Figures is.
const FiguresDays = 90

// A Box is a part of the globe. West above East spans the antimeridian.
type Box struct {
	West, South, East, North float64
}

var errBox = errors.New("must be west,south,east,north in degrees, such as 107.5,-7.0,107.7,-6.8")

// ParseBox reads "west,south,east,north", as in RFC 7946, section 5.
func ParseBox(s string) (*Box, error) {
	parts := strings.Split(s, ",")
	if len(parts) != 4 {
		return nil, errBox
	}
	var v [4]float64
	for i, part := range parts {
		limit := 180.0
		if i%2 == 1 {
			limit = 90
		}
		var err error
		v[i], err = strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || math.IsNaN(v[i]) || math.Abs(v[i]) > limit {
			return nil, errBox
		}
	}
	if v[1] > v[3] {
		return nil, fmt.Errorf("south is above north; %w", errBox)
	}
	return &Box{West: v[0], South: v[1], East: v[2], North: v[3]}, nil
}

// maxWords keeps a search cheap.
const maxWords = 10

// Words returns the words of a search as text search takes them: letters,
// digits and marks, composed (NFKC) and in lower case. Words after the tenth are
// ignored. The database folds what is left of their case, see search_form there. The id of a
// report, or a link with one, is one word, see IDOf.
func Words(q string) []string {
	if id := idForm.FindString(q); id != "" {
		return []string{strings.ToLower(id)}
	}
	words := strings.FieldsFunc(strings.ToLower(norm.NFKC.String(q)), func(r rune) bool {
		return !unicode.In(r, unicode.Letter, unicode.Digit, unicode.Mark)
	})
	return words[:min(len(words), maxWords)]
}

var idForm = regexp.MustCompile(`(?i)\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// IDOf returns the id that is the only one of words.
func IDOf(words []string) (id uuid.UUID, ok bool) {
	if len(words) != 1 || !strings.Contains(words[0], "-") { // other words have no hyphens
		return uuid.Nil, false
	}
	id, err := uuid.Parse(words[0])
	return id, err == nil
}

// A Cursor is the place of a report in a list.
type Cursor struct {
	List uint32 // see Filter.List; the place is valid in this list only
	Key  int64  // the sort key: a time in Unix microseconds, or the score
	ID   uuid.UUID
}

const cursorSize = 4 + 8 + 16

var errCursor = errors.New("must be a next_cursor from a page with the same filters and order")

// String returns the cursor in the form that ParseCursor reads.
func (c Cursor) String() string {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, cursorSize), c.List)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Key))
	return base64.RawURLEncoding.EncodeToString(append(b, c.ID[:]...))
}

// ParseCursor reads a cursor that String returned.
func ParseCursor(s string) (*Cursor, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != cursorSize {
		return nil, errCursor
	}
	c := &Cursor{List: binary.BigEndian.Uint32(b), Key: int64(binary.BigEndian.Uint64(b[4:])), ID: uuid.UUID(b[12:])}
	if year := time.UnixMicro(c.Key).UTC().Year(); year < 1 || year > 9999 { // outside of the database's range
		return nil, errCursor
	}
	return c, nil
}

// CursorAt returns the place of r in the list that f shows.
func (f Filter) CursorAt(r Report) *Cursor {
	c := &Cursor{List: f.List(), Key: r.CreatedAt.UnixMicro(), ID: r.ID}
	switch f.Order {
	case Changed:
		c.Key = r.UpdatedAt.UnixMicro()
	case Score:
		c.Key = r.Score
	case Newest, Oldest, Due: // see CursorAtTask
	}
	return c
}

// CursorAtTask returns the place of t in the queue that f shows.
func (f Filter) CursorAtTask(t Task) *Cursor {
	c := f.CursorAt(t.Report)
	if f.Order == Due {
		c.Key = noDue.UnixMicro()
		if t.DueAt != nil {
			c.Key = t.DueAt.UnixMicro()
		}
	}
	return c
}

// Of returns an error, as ParseCursor does, unless c belongs to the list that f
// shows, or to the reports that come before it.
func (c Cursor) Of(f Filter) error {
	if c.List != f.List() && c.List != f.Pinned().List() {
		return errCursor
	}
	return nil
}
