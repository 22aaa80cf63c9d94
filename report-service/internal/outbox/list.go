package outbox

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Message is an outbox row without its body and headers, which may identify
// people.
type Message struct {
	Seq           int64
	ID            uuid.UUID
	RoutingKey    string
	Status        Status
	ReportID      uuid.UUID
	ReportVersion int64
	CreatedAt     time.Time
	PublishedAt   *time.Time
	NextAttemptAt *time.Time
	RetryCount    int32
	LastError     *string
}

// messageColumns are those of a Message, in its order.
const messageColumns = `seq, id, routing_key, status, report_id, report_version, created_at, published_at, next_attempt_at, retry_count, last_error`

// A Filter says which rows List returns. Zero fields do not restrict, except
// that Status must be set.
type Filter struct {
	Status     Status
	RoutingKey string
	ReportID   uuid.UUID
	ID         uuid.UUID
	TraceID    string // of the headers' traceparent
	Cursor     string // from the previous page
	Limit      int
}

// A Page is what List returns; Next is empty on the last one.
type Page struct {
	Messages []Message
	Next     string
}

// publishedSearched is among how many of the published rows one of a report or a trace is
// looked for, the latest ones: neither has an index, which would cost each message a write.
// So a search reads as many rows at the most, however many there are.
const publishedSearched = 20_000

// List returns the rows that match f, oldest first.
func (s *Store) List(ctx context.Context, f Filter) (Page, error) {
	var after int64
	if f.Cursor != "" {
		var err error
		if after, err = strconv.ParseInt(f.Cursor, 36, 64); err != nil {
			return Page{}, fault.NewInvalid("cursor", "must be the next_cursor of another page")
		}
	}
	table := "outbox_messages"
	if f.Status == Published && f.ID == uuid.Nil && (f.ReportID != uuid.Nil || f.TraceID != "") {
		table = recentSQL
	}
	messages, err := pgpool.Collect(ctx, s.pool, "list outbox messages", pgx.RowToStructByPos[Message], fmt.Sprintf(listSQL, table), f.Status, after, f.RoutingKey, f.ReportID, f.Limit+1, f.ID, f.TraceID)
	if err != nil {
		return Page{}, err
	}
	page := Page{Messages: messages}
	if len(messages) > f.Limit {
		page.Messages = messages[:f.Limit]
		page.Next = strconv.FormatInt(page.Messages[f.Limit-1].Seq, 36)
	}
	return page, nil
}

const listSQL = `
	select ` + messageColumns + `
	from %s
	where status = $1 and seq > $2
	  and ($3 = '' or routing_key = $3)
	  and ($4 = '00000000-0000-0000-0000-000000000000'::uuid or report_id = $4)
	  and ($6 = '00000000-0000-0000-0000-000000000000'::uuid or id = $6)
	  and ($7 = '' or split_part(headers ->> 'traceparent', '-', 2) = $7)
	order by seq
	limit $5`

var recentSQL = fmt.Sprintf(
	`(select * from outbox_messages where status = 'published' order by published_at desc limit %d) latest`, publishedSearched)
