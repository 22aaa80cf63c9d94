package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// startOverRows is how many streams get another epoch at a time.
const startOverRows = 1000

// StartOver gives every stream another epoch, because the numbers that clients
// have seen come again: a client with an earlier cursor is reset and
// reads everything again, whether its number is there again or not.
func (s *Streams) StartOver(ctx context.Context, _ int) error {
	for after := int64(0); ; {
		next, err := s.startOver(ctx, after)
		switch {
		case pgpool.Transient(err): // another replica locks streams in another order
			continue
		case err != nil:
			return fmt.Errorf("give streams another epoch: %w", err)
		case next == 0:
			return nil
		}
		after = next
	}
}

func (s *Streams) startOver(ctx context.Context, after int64) (next int64, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		ids, err := pgpool.Collect(ctx, tx, "list streams", pgx.RowTo[int64], `select id from streams where id > $1 order by id limit $2`, after, startOverRows)
		if err != nil || len(ids) == 0 {
			return err
		}
		if len(ids) == startOverRows {
			next = ids[len(ids)-1]
		}
		_, err = tx.Exec(ctx, `select from streams where id = any($1) order by name collate "C" for no key update`, ids)
		if err == nil {
			_, err = tx.Exec(ctx, `update streams set epoch = default where id = any($1)`, ids)
		}
		return err
	})
	return next, err
}
