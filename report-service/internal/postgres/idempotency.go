package postgres

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// keyLife is how long a repetition is recognised. Retention deletes older keys.
const keyLife = 24 * time.Hour

// A keyHash stands for an idempotency key and its user in the database.
type keyHash struct {
	// lock has no secret, so that replicas with different secrets agree on it.
	// It is not stored.
	lock [32]byte
	// stored are the hashes under which there may be a row. New rows get the
	// first.
	stored [][]byte
}

// hashKey returns the hashes of i's key. Rows are found by a hash that only
// this service can compute (HMAC-SHA256, RFC 2104): the row contains the report
// that was filed, and with a plain hash of a key such as "1" anybody who can
// read the table could find its author by trying all users.
func (db *DB) hashKey(i *report.Idempotent) keyHash {
	text := fmt.Appendf(nil, "%d:%s:%s", len(i.UserID), i.UserID, i.Key)
	h := keyHash{lock: sha256.Sum256(text)}
	for _, secret := range db.hashKeys {
		mac := hmac.New(sha256.New, secret)
		mac.Write(text)
		h.stored = append(h.stored, mac.Sum(nil))
	}
	// Rows of earlier versions have the plain hash. They live for keyLife, so
	// that the next release need not know it.
	h.stored = append(h.stored, h.lock[:])
	return h
}

// A storedResponse is the database's record of an earlier request with the same
// key.
type storedResponse struct {
	locked   bool // no other request with the key is running
	found    bool
	request  []byte
	response report.StoredResponse
}

// read queues two statements, because only the second sees rows that were
// committed before the lock was taken.
func (s *storedResponse) read(b *pgx.Batch, key keyHash) {
	b.Queue(`select pg_try_advisory_xact_lock($1)`, int64(binary.BigEndian.Uint64(key.lock[:]))).
		QueryRow(func(row pgx.Row) error { return row.Scan(&s.locked) })
	b.Queue(storedSQL, key.stored, keyLife).
		QueryRow(optional(&s.found, &s.request, &s.response))
}

// readStored returns the response to an earlier request with the same key, or nil, in a
// transaction that has locked the report of the request.
func readStored(ctx context.Context, tx pgx.Tx, key keyHash, i *report.Idempotent) (report.StoredResponse, error) {
	var s storedResponse
	var b pgx.Batch
	s.read(&b, key)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("look for an earlier request: %w", err)
	}
	return s.response, s.check(i)
}

const storedSQL = `
	select request_hash, response_body from idempotency_keys
	where key_hash = any($1) and created_at > now() - $2::interval`

func (s *storedResponse) check(i *report.Idempotent) error {
	switch {
	case !s.locked:
		return fault.New(report.StillRunning, "a request with this Idempotency-Key is still running")
	case s.found && !bytes.Equal(s.request, i.Request[:]):
		return fault.New(report.KeyReused, "this Idempotency-Key was used with another body before")
	}
	return nil
}

// storeResponse queues the row by which repetitions are recognised. It may
// replace an expired one that is not deleted yet. Earlier versions read
// response_status and response_headers, which are the same for all.
func storeResponse(b *pgx.Batch, key keyHash, i *report.Idempotent) {
	b.Queue(`
		insert into idempotency_keys (key_hash, request_hash, response_status, response_headers, response_body)
		values ($1, $2, 201, '{}', $3)
		on conflict (key_hash) do update set
			request_hash = excluded.request_hash, response_body = excluded.response_body, created_at = excluded.created_at`,
		key.stored[0], i.Request[:], []byte(i.Response))
}
