package postgres

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// keyLife is how long a repetition is recognised.
	keyLife = 24 * time.Hour
	// cleanEvery is about how often keys that are older are deleted.
	cleanEvery = 10 * time.Minute
	// cleanBatch keeps each deletion short.
	cleanBatch = 1000
)

// A keyHash is an idempotency key, and who chose it, as the database knows them.
type keyHash struct {
	// lock has no secret, so that replicas with different secrets agree on it.
	// It is not stored.
	lock [32]byte
	// stored are the hashes under which there may be a row. New rows have the
	// first.
	stored [][]byte
}

// hashKey returns the hashes of i's key. Rows are found by one that only this
// service can compute (HMAC-SHA256, RFC 2104): the row has the report that
// was filed, and with a plain hash of a key such as "1" whoever can read the
// table would find its author by trying all users.
func (s *Store) hashKey(i *report.Idempotent) keyHash {
	text := fmt.Appendf(nil, "%d:%s:%s", len(i.UserID), i.UserID, i.Key)
	h := keyHash{lock: sha256.Sum256(text)}
	for _, secret := range s.hashKeys {
		mac := hmac.New(sha256.New, secret)
		mac.Write(text)
		h.stored = append(h.stored, mac.Sum(nil))
	}
	// Rows of earlier versions have the plain hash. They live for keyLife, so
	// that the next release need not know it.
	h.stored = append(h.stored, h.lock[:])
	return h
}

// A storedResponse is what the database has of an earlier request with the
// same key.
type storedResponse struct {
	locked   bool // no other request with the key is running
	found    bool
	request  []byte
	response report.StoredResponse
}

// read queues two statements, because only the second sees what was committed
// before the lock was taken.
func (s *storedResponse) read(b *pgx.Batch, key keyHash) {
	b.Queue(`select pg_try_advisory_xact_lock($1)`, int64(binary.BigEndian.Uint64(key.lock[:]))).
		QueryRow(func(row pgx.Row) error { return row.Scan(&s.locked) })
	b.Queue(storedSQL, key.stored, keyLife).
		QueryRow(optional(&s.found, &s.request, &s.response))
}

const storedSQL = `
	select request_hash, response_body from idempotency_keys
	where key_hash = any($1) and created_at > now() - $2::interval`

func (s *storedResponse) check(i *report.Idempotent) error {
	switch {
	case !s.locked:
		return fault.New(report.StillRunning, "a request with this Idempotency-Key has not ended yet")
	case s.found && !bytes.Equal(s.request, i.Request[:]):
		return fault.New(report.KeyReused, "this Idempotency-Key came with another body before")
	}
	return nil
}

// storeResponse queues the row by which repetitions are recognised. It may
// replace one that has expired and is not deleted yet. Earlier versions read
// response_status and response_headers, which are the same for all.
func storeResponse(b *pgx.Batch, key keyHash, i *report.Idempotent) {
	b.Queue(`
		insert into idempotency_keys (key_hash, request_hash, response_status, response_headers, response_body)
		values ($1, $2, 201, '{}', $3)
		on conflict (key_hash) do update set
			request_hash = excluded.request_hash, response_body = excluded.response_body, created_at = excluded.created_at`,
		key.stored[0], i.Request[:], []byte(i.Response))
}

// RunCleaner deletes expired idempotency keys until ctx ends. Any number of
// replicas may do so.
func (s *Store) RunCleaner(ctx context.Context, log zerolog.Logger) error {
	for {
		deleted, err := s.cleanKeys(ctx)
		if err != nil && ctx.Err() == nil {
			// The error's own text may name the server and its user.
			log.Warn().Str("error", cmp.Or(pgpool.Describe(err), err.Error())).Msg("cleaning idempotency keys failed, will retry")
		}
		if deleted > 0 {
			log.Debug().Int64("deleted", deleted).Msg("idempotency keys cleaned")
		}
		if backoff.Sleep(ctx, backoff.Jitter(cleanEvery)) != nil { // jitter, so that replicas do not meet
			return nil
		}
	}
}

// cleanKeys deletes what is expired, in batches.
func (s *Store) cleanKeys(ctx context.Context) (deleted int64, err error) {
	for {
		tag, err := s.pool.Exec(ctx, `
			delete from idempotency_keys where key_hash in (
				select key_hash from idempotency_keys
				where created_at <= now() - $1::interval
				limit $2 for update skip locked)`, keyLife, cleanBatch)
		if err != nil {
			return deleted, fmt.Errorf("delete idempotency keys: %w", err)
		}
		deleted += tag.RowsAffected()
		if tag.RowsAffected() < cleanBatch {
			return deleted, nil
		}
	}
}
