package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/onejson"
)

// nameless returns the body of a message as it would have been, had its report been
// anonymous; changed says whether that is different. A body that is not a
// JSON object says nothing of a report that could be read, and stays.
func nameless(body []byte) (_ []byte, changed bool) {
	value, err := onejson.Decode(body)
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return body, false
	}
	for name := range object {
		switch strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name)) {
		case "reporterid", "reportername":
			delete(object, name)
			changed = true
		case "privacylevel":
			changed = changed || object[name] != string(event.Anonymous)
			object[name] = string(event.Anonymous)
		}
	}
	if !changed {
		return body, false
	}
	if body, err = json.Marshal(object); err != nil {
		panic(err) // it was JSON before
	}
	return body, true
}

// hideNames takes the reporters' names out of dead letters and delayed messages about
// the reports of which the batch says so. Notifications and deliveries have no names.
func hideNames(ctx context.Context, tx pgx.Tx, batch []Message) error {
	for _, m := range batch {
		moderated := m.Value.Moderated
		if moderated == nil || moderated.Action != event.NameHidden {
			continue
		}
		for _, table := range []string{"dead_letters", "delayed_messages"} {
			if err := hideNameIn(ctx, tx, table, moderated.ReportID); err != nil {
				return err
			}
		}
	}
	return nil
}

// hideNameIn does so in one table. A row is found by the report's id in its body.
func hideNameIn(ctx context.Context, tx pgx.Tx, table string, report uuid.UUID) error {
	type row struct {
		At   string // where it is, until the end of the transaction
		Body []byte
	}
	rows, err := collect(ctx, tx, "find messages", pgx.RowToStructByPos[row],
		`select ctid::text, body from `+table+` where position(convert_to($1, 'UTF8') in body) > 0 for update`, report.String())
	if err != nil {
		return err
	}
	for _, r := range rows {
		body, changed := nameless(r.Body)
		if !changed {
			continue
		}
		if _, err := tx.Exec(ctx, `update `+table+` set body = $2 where ctid = $1::tid`, r.At, body); err != nil {
			return fmt.Errorf("hide name in %s: %w", table, err)
		}
	}
	return nil
}

// hideNamesIn takes the names out of dead letters that were on their way while the names
// were hidden.
func (s *Erased) hideNamesIn(ctx context.Context, letters []deadletter.Letter) error {
	of := make(map[uuid.UUID][]int, len(letters))
	reports := make([]uuid.UUID, 0, len(letters))
	for i, l := range letters {
		var about struct {
			ReportID uuid.UUID `json:"report_id"`
		}
		if json.Unmarshal(l.Body, &about) == nil {
			of[about.ReportID], reports = append(of[about.ReportID], i), append(reports, about.ReportID)
		}
	}
	hidden, err := collect(ctx, s.pool, "read hidden names", pgx.RowTo[uuid.UUID],
		`select report_id from moderated_reports where anonymous and report_id = any($1)`, reports)
	if err != nil {
		return err
	}
	for _, report := range hidden {
		for _, i := range of[report] {
			letters[i].Body, _ = nameless(letters[i].Body)
		}
	}
	return nil
}
