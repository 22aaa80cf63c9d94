package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// A relay is the real one, in its own process.
type relay struct {
	cmd      *exec.Cmd
	commands io.WriteCloser
	out      *bytes.Buffer
}

// A result is what the relay measured itself.
type result struct {
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Reads float64 `json:"reads"`
}

// startRelay returns once the relay owns all shards.
func startRelay(ctx context.Context, f *fixture, program string) (*relay, error) {
	r := &relay{cmd: exec.CommandContext(ctx, program, "-database", f.database, "-broker", f.broker), out: new(bytes.Buffer)}
	r.cmd.Stdout, r.cmd.Stderr = r.out, os.Stderr
	var err error
	if r.commands, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	return r, f.until(ctx, `select count(*) = 16 from relay_shards where owner is not null and lease_until > now()`)
}

// stop drains the relay and returns what it measured.
func (r *relay) stop() (result, error) {
	_ = r.commands.Close()
	if err := r.cmd.Wait(); err != nil {
		return result{}, fmt.Errorf("relay: %w", err)
	}
	var measured result
	return measured, json.Unmarshal(r.out.Bytes(), &measured)
}

// relayBy measures a relay's program: how long it takes for n pending rows, from
// the moment of their commit to the last mark.
func relayBy(program string) func(context.Context, *fixture, int) (time.Duration, error) {
	return func(ctx context.Context, f *fixture, n int) (time.Duration, error) { return f.relay(ctx, program, n) }
}

func (f *fixture) relay(ctx context.Context, program string, n int) (time.Duration, error) {
	r, err := startRelay(ctx, f, program)
	if err != nil {
		return 0, err
	}
	if err := f.addPending(ctx, n); err != nil {
		return 0, err
	}
	before, err := f.wal(ctx)
	if err != nil {
		return 0, err
	}
	var began, ended time.Time
	if err := f.pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&began); err != nil {
		return 0, err
	}
	fmt.Fprintln(r.commands, "wake")
	if err := f.until(ctx, `select not exists (select from outbox_messages where status = 'pending')`); err != nil {
		return 0, err
	}
	after, err := f.wal(ctx)
	f.walBytes = after - before
	if err == nil {
		// To the server's last mark, not to when we noticed.
		err = f.pool.QueryRow(ctx, `select max(published_at) from outbox_messages where status = 'published'`).Scan(&ended)
	}
	_, stopErr := r.stop()
	return ended.Sub(began), errors.Join(err, stopErr)
}

// measureAt measures commit to confirm: it lets the relay's process commit rows at
// an even rate.
func measureAt(ctx context.Context, f *fixture, rate int) (result, error) {
	if err := f.fresh(ctx); err != nil {
		return result{}, err
	}
	r, err := startRelay(ctx, f, f.program)
	if err != nil {
		return result{}, err
	}
	fmt.Fprintf(r.commands, "rate %d %d\n", rate, *seconds)
	measured, err := r.stop()
	fmt.Printf("%4d rows/s: commit to confirm p50 %.1f ms, p99 %.1f ms, %.1f reads/s\n",
		rate, measured.P50, measured.P99, measured.Reads/float64(*seconds))
	return measured, err
}

// addPending commits n rows at once.
func (f *fixture) addPending(ctx context.Context, n int) error {
	ids := make([]uuid.UUID, reports)
	for i := range ids {
		ids[i] = uuid.New()
	}
	_, err := f.pool.CopyFrom(ctx, pgx.Identifier{"outbox_messages"},
		[]string{"id", "routing_key", "payload", "report_id", "report_version", "shard", "headers"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			id, version := ids[i%reports], i/reports+1
			hash := fnv.New32a()
			hash.Write(id[:])
			return []any{
				uuid.Must(uuid.NewV7()), string(key), json.RawMessage(body(id, version)), id, int64(version),
				int16(hash.Sum32() % 16), headers(),
			}, nil
		}))
	if err != nil {
		return fmt.Errorf("add pending rows: %w", err)
	}
	return nil
}

func (f *fixture) wal(ctx context.Context) (bytes int64, err error) {
	err = f.pool.QueryRow(ctx, `select pg_current_wal_insert_lsn() - '0/0'::pg_lsn`).Scan(&bytes)
	return bytes, err
}

// until asks the database until the answer is yes.
func (f *fixture) until(ctx context.Context, question string) error {
	return wait.Until(ctx, patience, question, func(ctx context.Context) (yes bool, err error) {
		err = f.pool.QueryRow(ctx, question).Scan(&yes)
		return yes, err
	})
}

// patience is more than any pass takes.
const patience = 10 * time.Minute
