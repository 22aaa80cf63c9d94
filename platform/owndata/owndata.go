// Package owndata answers people with everything that a service holds about them, as
// Article 15 of the GDPR gives them a right to.
//
// An answer is put together in memory, from one moment of the database: it is as large as
// what one person can do within the limits per user.
package owndata

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Section is one kind of what is held. SQL returns a JSON object for each row about the
// person with the id $1.
type Section struct{ Name, SQL string }

// An Answer is what a service holds about a person.
type Answer struct {
	UserID string                       `json:"user_id"`
	MadeAt time.Time                    `json:"made_at"`
	Data   map[string][]json.RawMessage `json:"data"` // by the names of the sections, each of which is there
}

// Read reads the sections about a person at one moment.
func Read(ctx context.Context, pool *pgxpool.Pool, sections []Section, userID string) (Answer, error) {
	a := Answer{UserID: userID, MadeAt: time.Now().UTC(), Data: make(map[string][]json.RawMessage, len(sections))}
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		for _, s := range sections {
			found, err := pgpool.Collect(ctx, tx, "read own "+s.Name, pgx.RowTo[json.RawMessage], s.SQL, userID)
			if err != nil {
				return err
			}
			a.Data[s.Name] = found
		}
		return nil
	})
	return a, err
}

// Send answers with a, as a file that nobody keeps on the way.
func Send(w http.ResponseWriter, a Answer) error {
	w.Header().Set("Content-Disposition", `attachment; filename="own-data.json"`)
	w.Header().Set("Cache-Control", "no-store")
	return service.Encode(w, http.StatusOK, a)
}
