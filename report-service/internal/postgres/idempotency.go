package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/pseudonym"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// KeyLife is how long a repetition is recognised. Retention deletes older keys.
const KeyLife = 24 * time.Hour

// An earlier is what the database knows of an earlier request with the same key. Without a
// key there is none.
type earlier struct {
	*report.Idempotent // of the present request; nil without a key
	// hash has no secret, so that replicas with different secrets agree on the lock on it.
	// It is not stored.
	hash [32]byte
	// stored are the hashes under which there may be a row. New rows get the
	// first.
	stored [][]byte

	locked   bool // no other request with the key is running
	found    bool
	request  []byte
	response report.StoredResponse
}

// earlierThan returns the earlier request for one with i, which may be nil. Rows are found by
// a hash that only this service can compute (HMAC-SHA256, RFC 2104): the row contains the
// report that was filed, and with a plain hash of a key such as "1" anybody who can
// read the table could find its author by trying all users.
func (db *DB) earlierThan(i *report.Idempotent) earlier {
	e := earlier{Idempotent: i}
	if i != nil {
		text := fmt.Appendf(nil, "%d:%s:%s", len(i.UserID), i.UserID, i.Key)
		e.hash, e.stored = sha256.Sum256(text), pseudonym.Of(db.hashKeys, text)
	}
	return e
}

// read queues two statements, because only the second sees rows that were
// committed before the lock was taken.
func (e *earlier) read(b *pgx.Batch) {
	e.locked, e.found, e.request, e.response = e.Idempotent == nil, false, nil, nil
	if e.Idempotent == nil {
		return
	}
	b.Queue(`select pg_try_advisory_xact_lock($1)`, int64(binary.BigEndian.Uint64(e.hash[:]))).
		QueryRow(func(row pgx.Row) error { return row.Scan(&e.locked) })
	b.Queue(storedSQL, e.stored, KeyLife).
		QueryRow(optional(&e.found, &e.request, &e.response))
}

// readNow is read in a transaction that has locked the report of the request.
func (e *earlier) readNow(ctx context.Context, tx pgx.Tx) error {
	var b pgx.Batch
	e.read(&b)
	return send(ctx, tx, "look for an earlier request", &b)
}

const storedSQL = `
	select request_hash, response_body from idempotency_keys
	where key_hash = any($1) and created_at > now() - $2::interval`

func (e *earlier) check() error {
	switch {
	case !e.locked:
		return fault.New(report.StillRunning, "a request with this Idempotency-Key is still running")
	case e.found && !bytes.Equal(e.request, e.Request[:]):
		return fault.New(report.KeyReused, "this Idempotency-Key was used with another body before")
	}
	return nil
}

// done reports whether the earlier request has made the change, whose caller gets the same
// answer.
func (e *earlier) done(w *writeBatch) (bool, error) {
	if err := e.check(); err != nil {
		return false, err
	}
	w.doneBefore = w.doneBefore || e.found
	return e.found, nil
}

// keep queues the row by which repetitions are recognised. It may
// replace an expired one that is not deleted yet. Earlier versions read
// response_status and response_headers, which are the same for all.
func (e *earlier) keep(b *pgx.Batch) {
	if e.Idempotent == nil {
		return
	}
	b.Queue(`
		insert into idempotency_keys (key_hash, request_hash, response_status, response_headers, response_body)
		values ($1, $2, 201, '{}', $3)
		on conflict (key_hash) do update set
			request_hash = excluded.request_hash, response_body = excluded.response_body, created_at = excluded.created_at`,
		e.stored[0], e.Request[:], []byte(e.Response))
}
