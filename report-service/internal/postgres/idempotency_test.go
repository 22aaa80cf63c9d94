package postgres_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

func once(key, request string) *report.Idempotent {
	return &report.Idempotent{
		UserID: ann.ID, Key: key, Request: sha256.Sum256([]byte(request)), Response: []byte("answer to " + request),
	}
}

// plainHash is what no row has of a key, and what all replicas lock.
func plainHash(userID, key string) []byte {
	hash := sha256.Sum256(fmt.Appendf(nil, "%d:%s:%s", len(userID), userID, key))
	return hash[:]
}

func (f *fixture) fileOnce(i *report.Idempotent) (report.StoredResponse, error) {
	rep := filing(draft(report.Public), ann, time.Now())
	return f.Create(f.t.Context(), rep, i)
}

func TestRepetitionGetsTheSameResponse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if earlier, err := f.fileOnce(once("key", "body")); earlier != nil || err != nil {
		t.Fatalf("first: response %q, error %v; want neither", earlier, err)
	}
	before := f.count()
	earlier, err := f.fileOnce(once("key", "body"))
	if want := once("key", "body").Response; err != nil || !bytes.Equal(earlier, want) {
		t.Errorf("repetition: response %q, error %v; want %q", earlier, err, want)
	}
	_, err = f.fileOnce(once("key", "another body"))
	wantKind(t, err, report.KeyReused)
	if got := f.count(); !maps.Equal(got, before) {
		t.Errorf("rows %v, want %v", got, before)
	}
	if earlier, err := f.fileOnce(once("another key", "body")); earlier != nil || err != nil {
		t.Errorf("another key: response %q, error %v; want neither", earlier, err)
	}
}

// A reader of the table who knows the users and how keys are hashed learns from no
// row who sent the request.
func TestKeysNameNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.fileOnce(once("1", "body")); err != nil {
		t.Fatal(err)
	}
	var stored []byte
	if err := f.pool.QueryRow(t.Context(), `select key_hash from idempotency_keys`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(stored, plainHash(ann.ID, "1")) {
		t.Error("the row has a hash that anyone can compute")
	}
	stranger := openKeyed(t, f.database, event.NewKey("k1"))
	stranger.start()
	if earlier, err := stranger.fileOnce(once("1", "body")); earlier != nil || err != nil {
		t.Errorf("with another secret: response %q, error %v; want neither", earlier, err)
	}
}

// A repetition is recognised while the recipients' key is rotated.
func TestRepetitionAcrossRotation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.fileOnce(once("key", "body")); err != nil {
		t.Fatal(err)
	}
	rotated := openKeyed(t, f.database, event.NewKey("k2")+","+recipientKey)
	rotated.start()
	if earlier, err := rotated.fileOnce(once("key", "body")); earlier == nil || err != nil {
		t.Errorf("after the rotation: response %q, error %v; want a repetition", earlier, err)
	}
	if got := f.count()["reports"]; got != 1 {
		t.Errorf("%d reports, want 1", got)
	}
}

func TestRepetitionWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	o := once("key", "body")
	running, err := f.pool.Begin(t.Context()) // what the first holds until it ends
	if err != nil {
		t.Fatal(err)
	}
	defer running.Rollback(t.Context())
	if _, err := running.Exec(t.Context(), `select pg_advisory_xact_lock($1)`, int64(binary.BigEndian.Uint64(plainHash(ann.ID, "key")))); err != nil {
		t.Fatal(err)
	}
	_, err = f.fileOnce(o)
	wantKind(t, err, report.StillRunning)

	if err := running.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if earlier, err := f.fileOnce(o); earlier != nil || err != nil {
		t.Errorf("after the first was rolled back: response %q, error %v; want neither", earlier, err)
	}
}

func TestManyAtOnceFileOneReport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	replicas := []*fixture{f, f.replica()}
	var filed, repeated, running atomic.Int64
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			earlier, err := replicas[i%2].fileOnce(once("key", "body"))
			switch {
			case fault.KindOf(err) == report.StillRunning:
				running.Add(1)
			case err != nil:
				t.Errorf("Create: %v", err)
			case earlier != nil:
				repeated.Add(1)
			default:
				filed.Add(1)
			}
		})
	}
	wg.Wait()
	if got := f.count(); filed.Load() != 1 || got["reports"] != 1 || got["outbox_messages"] != 1 {
		t.Errorf("%d filed, rows %v; want one of each", filed.Load(), got)
	}
	t.Logf("1 filed, %d repeated, %d refused as running", repeated.Load(), running.Load())
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	age := func(key, interval string) {
		request := sha256.Sum256([]byte("body of " + key))
		f.exec(`update idempotency_keys set created_at = now() - $2::interval where request_hash = $1`, request[:], interval)
	}
	for _, key := range []string{"old", "older", "young"} {
		if _, err := f.fileOnce(once(key, "body of "+key)); err != nil {
			t.Fatal(err)
		}
	}
	age("old", "24:00:01")
	age("older", "48:00:00")
	age("young", "23:59:00")

	if earlier, err := f.fileOnce(once("old", "another body")); earlier != nil || err != nil {
		t.Errorf("an expired key: response %q, error %v; want it to be free again", earlier, err)
	}
	f.checkCleaned(2)
	if earlier, err := f.fileOnce(once("young", "body of young")); earlier == nil || err != nil {
		t.Errorf("a key of the day: response %q, error %v; want a repetition", earlier, err)
	}
}

// checkCleaned has retention delete expired keys, and compares how many are left.
func (f *fixture) checkCleaned(left int) {
	f.t.Helper()
	err := scheduletest.Run(f.t.Context(), f.pool, retention.Job(upkeep.Retention{}.Tasks(), prometheus.NewRegistry()))
	if err != nil {
		f.t.Fatal(err)
	}
	if got := f.count()["idempotency_keys"]; got != left {
		f.t.Errorf("%d keys are left, want %d", got, left)
	}
}

// A transaction that hangs on the row of an expired key must not stop retention.
func TestRetentionSkipsLockedKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, key := range []string{"a", "b"} {
		if _, err := f.fileOnce(once(key, "body")); err != nil {
			t.Fatal(err)
		}
	}
	f.exec(`update idempotency_keys set created_at = now() - interval '2 days'`)
	err := pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select from idempotency_keys limit 1 for update`); err != nil {
			return err
		}
		f.checkCleaned(1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
