package erasure

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/text"
)

// Scrub returns a message's body with Someone in place of all erased persons,
// and without the name of an erased reporter; changed says whether there was one.
// A body that is not JSON is searched for quoted texts.
func Scrub(body []byte, erased func(userID string) bool) (scrubbed []byte, changed bool) {
	return scrubText(body, erased, 0)
}

// maxNested is how many times JSON may be a text of other JSON and be kept, when
// somebody in it is erased. Each time that a text becomes part of another the
// backslashes in it are doubled: 32,000 times < thirteen texts deep would take 130 MB.
// Anything deeper is replaced by Someone.
const maxNested = 3

// scrubText is Scrub for a text in a text, nested times.
func scrubText(body []byte, erased func(userID string) bool, nested int) (scrubbed []byte, changed bool) {
	value, err := text.JSON(body)
	if err != nil {
		return scrubQuoted(body, erased)
	}
	value, changed = scrub(value, erased, nested)
	switch {
	case !changed:
		return body, false
	case nested > maxNested:
		return []byte(Someone), true
	}
	if scrubbed, err = json.Marshal(value); err != nil {
		panic(err) // it was JSON before
	}
	return scrubbed, true
}

// scrubQuoted checks every text between two quotes: in a body that is not JSON it
// is unknown which quotes open a text and which end one.
func scrubQuoted(body []byte, erased func(string) bool) (scrubbed []byte, changed bool) {
	text := string(body)
	for _, quote := range []string{`"`, `'`} {
		parts := strings.Split(text, quote)
		for i := 1; i < len(parts)-1; i++ {
			id := strings.TrimRight(parts[i], `\`) // of a quote that is escaped
			if id != "" && erased(id) {
				parts[i], changed = Someone+parts[i][len(id):], true
			}
		}
		text = strings.Join(parts, quote)
	}
	return []byte(text), changed
}

func scrub(value any, erased func(string) bool, nested int) (_ any, changed bool) {
	switch v := value.(type) {
	case map[string]any:
		reporter := false
		for name, item := range v {
			item, different := scrub(item, erased, nested)
			if different {
				v[name], changed = item, true
				reporter = reporter || text.FoldName(name) == "REPORTERID"
			}
		}
		for name := range v {
			if reporter && text.FoldName(name) == "REPORTERNAME" {
				delete(v, name)
			}
		}
	case []any:
		for i, item := range v {
			item, different := scrub(item, erased, nested)
			if different {
				v[i], changed = item, true
			}
		}
	case string:
		if v != "" && erased(v) {
			return Someone, true
		}
		if strings.HasPrefix(strings.TrimSpace(v), "{") { // JSON of its own
			inner, different := scrubText([]byte(v), erased, nested+1)
			return string(inner), different
		}
	}
	return value, changed
}

// Reseal replaces a sealed recipient who has been erased by one who is nobody, and
// reports whether it did. A recipient that does not open stays: nobody can open it.
func Reseal(keys *event.Keyring, report uuid.UUID, sealed string, erased func(userID string) bool) (_ string, changed bool) {
	userID, err := keys.Open(report, sealed)
	if err != nil || userID == "" || !erased(userID) {
		return sealed, false
	}
	return keys.Seal(report, ""), true
}

// Mentioned returns the regular expression of PostgreSQL for a text in which
// userID stands by itself: an id such as "1" is part of many words.
func Mentioned(userID string) string {
	return `(^|[^[:alnum:]])` + notWord.ReplaceAllString(userID, `\$0`) + `($|[^[:alnum:]])`
}

// notWord matches characters that may have a meaning in a regular expression.
var notWord = regexp.MustCompile(`[^\p{L}\p{N}]`)

// FromAudit takes a person from the next rows of table, a log of what operators did: their
// id from their acts, and what operators wrote in the column words from the rows that
// mention them. At first it takes the person from the requests of erasures, too.
func FromAudit(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int, table, words, without string) (next string, removed int64, err error) {
	if cursor == "" {
		if err := pgpool.Exec(ctx, tx, "change erasures", `update erasures set actor = $2 where actor = $1`, userID, Someone); err != nil {
			return "", 0, err
		}
		cursor = "0"
	}
	var last *string
	var found int
	err = tx.QueryRow(ctx, `
		with places as materialized (
			select id from `+table+` where id > $2::text::bigint order by id limit $3
		), changed as (
			update `+table+` a
			set actor = case when actor = $1 then $5 else actor end, `+words+` = case when `+words+`::text ~ $4 then '`+without+`' else `+words+` end
			from places p where a.id = p.id and (actor = $1 or `+words+`::text ~ $4) returning 1
		)
		select (select count(*) from changed), (select count(*) from places), (select max(id)::text from places)`,
		userID, cursor, limit, Mentioned(userID), Someone).Scan(&removed, &found, &last)
	if err != nil {
		return "", 0, fmt.Errorf("change audit: %w", err)
	}
	if found == limit {
		next = *last
	}
	return next, removed, nil
}
