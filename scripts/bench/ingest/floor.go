package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A floor is a bare client: what the service writes, in plain transactions.
type floor struct {
	conns   []*pgx.Conn
	reports []uuid.UUID // that stand, to vote on
}

func newFloor(ctx context.Context, database string, conns, reports int) (*floor, error) {
	f := &floor{}
	for range conns {
		conn, err := pgx.Connect(ctx, database)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		f.conns = append(f.conns, conn)
	}
	for range reports {
		id, err := f.insert(ctx, 0)
		if err != nil {
			return nil, err
		}
		if _, err := f.conns[0].Exec(ctx, `insert into reporters (report_id, reporter_id) values ($1, 'floor')`, id); err != nil {
			return nil, fmt.Errorf("insert reporter: %w", err)
		}
		f.reports = append(f.reports, id)
	}
	return f, nil
}

func (f *floor) close() {
	for _, conn := range f.conns {
		_ = conn.Close(context.Background())
	}
}

// Both sides file these.
const (
	title       = "Streetlight is dark at the crossing"
	description = "Since Monday the whole crossing is dark after sunset."
	address     = "Jl. Asia Afrika 8"
)

// create makes the two inserts that a report cannot do without.
func (f *floor) create(ctx context.Context, conn, _ int) error {
	_, err := f.insert(ctx, conn)
	return err
}

func (f *floor) insert(ctx context.Context, conn int) (uuid.UUID, error) {
	id := uuid.Must(uuid.NewV7())
	return id, pgx.BeginFunc(ctx, f.conns[conn], func(tx pgx.Tx) error {
		now := time.Now()
		_, err := tx.Exec(ctx, `
			insert into reports (id, title, description, category_id, latitude, longitude, address,
				privacy_level, status, score, version, created_at, updated_at)
			values ($1, $2, $3, 2, -6.9147, 107.6098, $4, 'public', 'pending', 0, 1, $5, $5)`,
			id, title, description, address, now)
		if err != nil {
			return fmt.Errorf("insert report: %w", err)
		}
		return announce(ctx, tx, id, "report.created", 1)
	})
}

func announce(ctx context.Context, tx pgx.Tx, id uuid.UUID, key string, version int64) error {
	payload := map[string]any{"report_id": id, "report_version": version, "report_title": title, "timestamp": time.Now().Unix()}
	_, err := tx.Exec(ctx, `
		insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, headers)
		values ($1, $2, $3, $4, $5, $6, '{}')`,
		uuid.Must(uuid.NewV7()), key, payload, id, version, int16(id[15]%16))
	if err != nil {
		return fmt.Errorf("insert outbox row: %w", err)
	}
	return nil
}

// voteOn votes on the reports in turn, one transaction per vote.
func (f *floor) voteOn(reports []uuid.UUID) action {
	return func(ctx context.Context, conn, k int) error {
		id, value := ballot(reports, conn, k)
		return pgx.BeginFunc(ctx, f.conns[conn], func(tx pgx.Tx) error {
			var score, version int64
			err := tx.QueryRow(ctx, `select score, version from reports where id = $1 for no key update`, id).Scan(&score, &version)
			if err != nil {
				return fmt.Errorf("lock report: %w", err)
			}
			_, err = tx.Exec(ctx, `
				insert into votes (report_id, voter_id, value, voted_at) values ($1, $2, $3, now())
				on conflict (report_id, voter_id) do update set value = excluded.value, voted_at = excluded.voted_at`,
				id, fmt.Sprintf("floor-%d", conn), value)
			if err != nil {
				return fmt.Errorf("insert vote: %w", err)
			}
			if _, err := tx.Exec(ctx, `update reports set score = $2, version = $3, updated_at = now() where id = $1`,
				id, score+int64(value), version+1); err != nil {
				return fmt.Errorf("update report: %w", err)
			}
			return announce(ctx, tx, id, "report.vote.received", version+1)
		})
	}
}

// ballot is vote number k of a connection: each differs from the one that the
// same voter cast on the same report before. Voters begin at places of their
// own, so that they meet no more than by chance.
func ballot(reports []uuid.UUID, conn, k int) (uuid.UUID, int16) {
	place := k + conn*17
	if (k/len(reports))%2 == 0 {
		return reports[place%len(reports)], 1
	}
	return reports[place%len(reports)], -1
}
