package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/story"
)

// A Story is what the outbox knows of one message.
type Story struct {
	Message *Message // nil if its row is gone: published long ago, or discarded
	TraceID string   // of the request
	Entries []story.Entry
}

// actsSearched is among how many of operators' latest acts a message is looked for:
// they have no index by it, and an hour of failed messages may have been retried at once.
const actsSearched = 5000

// Story returns what happened to a message until the broker confirmed it. A message that
// is unknown has no entries.
func (s *Store) Story(ctx context.Context, id uuid.UUID) (Story, error) {
	type known struct {
		Message
		TraceID string
		First   *time.Time // when it was published, if it was published again since
	}
	found, err := pgpool.Collect(ctx, s.pool, "read outbox message", pgx.RowToStructByPos[known], `
		select `+messageColumns+`, split_part(headers ->> 'traceparent', '-', 2), (headers ->> '`+firstPublished+`')::timestamptz
		from outbox_messages where id = $1`, id)
	if err != nil {
		return Story{}, err
	}
	var told Story
	if len(found) > 0 {
		m := found[0]
		told = Story{Message: &m.Message, TraceID: m.TraceID, Entries: m.entries(m.First)}
	}
	acts, err := s.acts(ctx, id)
	told.Entries = append(told.Entries, acts...)
	return told, err
}

// place is where the entries of the outbox happened.
const place = "outbox"

// entries are what the row says of its past, and of its next attempt.
func (m Message) entries(first *time.Time) []story.Entry {
	entries := []story.Entry{{At: m.CreatedAt, Kind: story.Accepted, Place: place}}
	if first != nil {
		entries = append(entries, story.Entry{At: *first, Kind: story.Published, Place: place, DurationMs: new(first.Sub(m.CreatedAt).Milliseconds())})
	}
	if m.NextAttemptAt != nil {
		entries = append(entries, story.Entry{
			At: *m.NextAttemptAt, Kind: story.PublishDue, Place: place, Attempts: &m.RetryCount, Reason: m.LastError,
		})
	}
	if m.PublishedAt != nil {
		e := story.Entry{At: *m.PublishedAt, Kind: story.Published, Place: place, Attempts: new(m.RetryCount + 1)}
		if first == nil { // or else it has waited since it was published again
			e.DurationMs = new(m.PublishedAt.Sub(m.CreatedAt).Milliseconds())
		}
		entries = append(entries, e)
	}
	return entries
}

// kinds are the entries of operators' acts.
var kinds = map[string]story.Kind{"retry": story.Requeued, "discard": story.Withdrawn, "republish": story.Requeued}

// acts are what operators did to a message, also by hand, without who they were. That a group waits no
// longer for it changed nothing of the message.
func (s *Store) acts(ctx context.Context, id uuid.UUID) ([]story.Entry, error) {
	return pgpool.Collect(ctx, s.pool, "read acts on outbox message", func(row pgx.CollectableRow) (story.Entry, error) {
		e := story.Entry{Place: place}
		var action string
		err := row.Scan(&e.At, &action, &e.Reason)
		e.Kind = kinds[action]
		return e, err
	}, `
		select at, action, nullif(reason, '')
		from (select at, action, reason, message_id from outbox_audit order by id desc limit $2) latest
		where message_id = $1 and action <> 'close'
		union all select deleted_at, 'discard', 'deleted by hand before it was published' from deleted_rows where id = $1`, id, actsSearched)
}
