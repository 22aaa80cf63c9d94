package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/text"
)

// A forgotten is what messages about a report are not to have any more: the reporter's
// name, or, with a title, all that people wrote and where exactly it was.
type forgotten struct {
	report uuid.UUID
	title  string // the report's reference, in place of the words; empty where they stay
}

// nameless returns the body of a message as it would have been, had the report been
// anonymous, or had no words; changed says whether that is different. Of a body that is not a JSON object
// nobody knows which words name somebody, and how many of them there are tells who it may
// be: it keeps the report's id alone. No consumer can read such a body, so that nothing is
// lost that could have had an effect.
func (f forgotten) nameless(body []byte) (_ []byte, changed bool) {
	value, err := text.JSON(body)
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return []byte(`{"report_id":"` + f.report.String() + `"}`), true
	}
	if !f.removeNames(object, 0) {
		return body, false
	}
	if body, err = json.Marshal(object); err != nil {
		panic(err) // it was JSON before
	}
	return body, true
}

// maxNested is how many times JSON may be a text of other JSON and be searched for
// names. Nothing is kept of a deeper text.
const maxNested = 3

// removeNames takes the names out of an object, and out of all that is in it. The object
// is in a text in a text, nested times.
func (f forgotten) removeNames(object map[string]any, nested int) (changed bool) {
	for name, item := range object {
		switch key := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name)); key {
		case "reporterid", "reportername":
			delete(object, name)
			changed = true
		case "privacylevel":
			changed = changed || item != string(event.Anonymous)
			object[name] = string(event.Anonymous)
		case "reporttitle", "note", "latitude", "longitude", "previouslatitude", "previouslongitude", "asset":
			if f.title == "" {
				continue
			}
			changed = true
			if delete(object, name); key == "reporttitle" {
				object[name] = f.title
			}
		default:
			without, different := f.withoutNames(item, nested)
			object[name], changed = without, changed || different
		}
	}
	return changed
}

// withoutNames does so for any value.
func (f forgotten) withoutNames(value any, nested int) (_ any, changed bool) {
	switch v := value.(type) {
	case map[string]any:
		return v, f.removeNames(v, nested)
	case []any:
		for i, item := range v {
			without, different := f.withoutNames(item, nested)
			v[i], changed = without, changed || different
		}
	case string: // which may hold JSON of its own
		if !strings.Contains(v, "{") {
			return v, false
		}
		inner, err := text.JSON([]byte(v))
		if err != nil || nested == maxNested {
			return "", true
		}
		if inner, changed = f.withoutNames(inner, nested+1); changed {
			text, err := json.Marshal(inner)
			if err != nil {
				panic(err) // it was JSON before
			}
			return string(text), true
		}
	}
	return value, changed
}

// hideNames takes the reporters' names out of dead letters and delayed messages about
// the reports of which the batch says so, or all words. Notifications and deliveries have no names.
func hideNames(ctx context.Context, tx pgx.Tx, batch []Message) error {
	for _, m := range batch {
		moderated := m.Value.Moderated
		if moderated == nil || moderated.Action != event.NameHidden && moderated.Action != event.WordsRemoved {
			continue
		}
		f := forgotten{report: moderated.ReportID}
		if moderated.Action == event.WordsRemoved {
			f.title = moderated.ReportTitle
		}
		for _, table := range []string{"dead_letters", "delayed_messages"} {
			if err := f.hideIn(ctx, tx, table); err != nil {
				return err
			}
		}
	}
	return nil
}

// hideIn does so in one table. A row is found by the report's id in its body.
func (f forgotten) hideIn(ctx context.Context, tx pgx.Tx, table string) error {
	type row struct {
		At   string // where it is, until the end of the transaction
		Body []byte
	}
	rows, err := pgpool.Collect(ctx, tx, "find messages", pgx.RowToStructByPos[row],
		`select ctid::text, body from `+table+` where position(convert_to($1, 'UTF8') in body) > 0
			or position(convert_to(upper($1), 'UTF8') in body) > 0 for update`, f.report.String())
	if err != nil {
		return err
	}
	for _, r := range rows {
		body, changed := f.nameless(r.Body)
		if !changed {
			continue
		}
		sql := `update ` + table + ` set body = $2 where ctid = $1::tid`
		if table == "dead_letters" && !isObject(r.Body) {
			sql = forgetPlaceSQL
		}
		if _, err := tx.Exec(ctx, sql, r.At, body); err != nil {
			return fmt.Errorf("hide name in %s: %w", table, err)
		}
	}
	return nil
}

// forgetPlaceSQL also forgets where a dead letter's body was broken, which may be as many
// bytes from its beginning as the name is long.
const forgetPlaceSQL = `
	with changed as (
	  update dead_letters set body = $2, error = error_group,
	    headers = case when headers ? '` + failure.FinalErrorHeader + `'
	      then jsonb_set(headers, '{` + failure.FinalErrorHeader + `}', to_jsonb(error_group)) else headers end
	  where ctid = $1::tid returning id, error_group
	)
	update dead_letter_attempts a set error = c.error_group from changed c where a.dead_letter_id = c.id`

// isObject reports whether a body is what nameless can take apart.
func isObject(body []byte) bool {
	value, err := text.JSON(body)
	_, ok := value.(map[string]any)
	return err == nil && ok
}

// forgetPlace is forgetPlaceSQL for a letter that is not kept yet.
func forgetPlace(l *deadletter.Letter) {
	l.Error = l.Group
	var headers map[string]json.RawMessage
	if json.Unmarshal(l.Headers, &headers) != nil || headers[failure.FinalErrorHeader] == nil {
		return
	}
	var err error
	if headers[failure.FinalErrorHeader], err = json.Marshal(l.Group); err == nil {
		l.Headers, err = json.Marshal(headers)
	}
	if err != nil {
		panic(err) // they were JSON before
	}
}

// hideNamesIn takes the names out of messages that were on their way to a table while the
// names were hidden.
func (s *Erased) hideNamesIn(ctx context.Context, letters []deadletter.Letter) error {
	of := make(map[uuid.UUID][]int, len(letters))
	for i, l := range letters {
		for _, text := range uuidPattern.FindAllString(string(l.Body), -1) {
			id := uuid.MustParse(text)
			of[id] = append(of[id], i)
		}
	}
	hidden, err := pgpool.Collect(ctx, s.pool, "read hidden names", func(row pgx.CollectableRow) (f forgotten, err error) {
		return f, row.Scan(&f.report, &f.title)
	}, `select report_id, case when words_removed then title else '' end from moderated_reports where anonymous and report_id = any($1)`, slices.Collect(maps.Keys(of)))
	if err != nil {
		return err
	}
	for _, f := range hidden {
		for _, i := range of[f.report] {
			if !isObject(letters[i].Body) {
				forgetPlace(&letters[i])
			}
			letters[i].Body, _ = f.nameless(letters[i].Body)
		}
	}
	return nil
}

// uuidPattern finds the reports that a body is about, also if it is not JSON.
var uuidPattern = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
