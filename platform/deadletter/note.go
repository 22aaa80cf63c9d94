package deadletter

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Cause names a group: what failed in a queue for the same reason.
type Cause struct {
	Queue string `json:"queue"`
	Class string `json:"error_class"`
	Group string `json:"error_group"`
}

// A Note is what operators wrote about a group. It stays as long as the archive has
// letters of the group, closed ones too, and for 90 days after it was written.
type Note struct {
	Text      string    `json:"text"`
	Author    string    `json:"author"` // who wrote it last
	WrittenAt time.Time `json:"written_at"`
	Version   int64     `json:"version"` // another one with each text
}

// noteSQL selects a Note from the row n of a group.
const noteSQL = `
  select jsonb_build_object('text', n.text, 'author', n.author, 'written_at', n.written_at, 'version', n.version)
  from dead_letter_notes n`

// SetNote writes a group's note in the place of that at version; 0 is none yet. The audit
// says who wrote which, and not the text: what is removed is gone.
func (s *Store) SetNote(ctx context.Context, actor string, c Cause, version int64, text string) (note Note, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		known, err := pgpool.Value[bool](ctx, tx, "find group", `
			select exists (select from dead_letters where queue = $1 and error_class = $2 and error_group = $3)`,
			c.Queue, c.Class, c.Group)
		if err != nil {
			return err
		}
		if !known {
			return ErrNoGroup
		}
		// Two first notes at the same time: the second finds a row, at another version than 0.
		err = tx.QueryRow(ctx, `
			insert into dead_letter_notes as n (queue, error_class, error_group, text, author)
			select $1, $2, $3, $5, $6
			where $4 = 0 or exists (
			  select from dead_letter_notes where queue = $1 and error_class = $2 and error_group = $3 and version = $4)
			on conflict (queue, error_class, error_group) do update
			set text = excluded.text, author = excluded.author, written_at = now(), version = default
			where n.version = $4
			returning n.text, n.author, n.written_at, n.version`,
			c.Queue, c.Class, c.Group, version, text, actor).Scan(&note.Text, &note.Author, &note.WrittenAt, &note.Version)
		if err = pgpool.Found(err, "write note", ErrStale); err != nil {
			return err
		}
		return writeNoted(ctx, tx, actor, audit.Note, c)
	})
	return note, err
}

// RemoveNote removes a group's note, if it is at version.
func (s *Store) RemoveNote(ctx context.Context, actor string, c Cause, version int64) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			delete from dead_letter_notes where queue = $1 and error_class = $2 and error_group = $3 and version = $4`,
			c.Queue, c.Class, c.Group, version)
		if err != nil {
			return fmt.Errorf("remove note: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return ErrStale
		}
		return writeNoted(ctx, tx, actor, audit.NoteRemoved, c)
	})
}

func writeNoted(ctx context.Context, tx pgx.Tx, actor string, action audit.Action, c Cause) error {
	return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: action, Queue: &c.Queue},
		map[string]string{"error_class": c.Class, "error_group": c.Group})
}
