package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// ApplyEach gives each message of a batch that Apply has failed for its effect, under a
// savepoint of its own, and returns which have it now, with what that brought about. It
// leaves those that the plain form of the statement is not for, and calls failed for those
// that fail, by their places.
func (s *Effects) ApplyEach(ctx context.Context, queue string, batch []Message, failed func(i int, err error)) (applied []bool, effects notification.Batch, err error) {
	followers, err := followers(ctx, s.pool, batch)
	if err != nil {
		return nil, effects, err
	}
	desks, err := desks(ctx, s.pool, batch)
	if err != nil {
		return nil, effects, err
	}
	s.erased.hideAskers(batch)
	args := make([]*applyArgs, len(batch))
	sql := make([]consumer.Statement, len(batch))
	for i := range batch {
		one := batch[i : i+1]
		if one[0].Value.Moderated != nil { // which takes more than the statement: see Apply
			continue
		}
		if args[i], err = newApplyArgs(one, followers, desks); err != nil {
			return nil, effects, err
		}
		st := statements[s.form(one)]
		sql[i] = consumer.Statement{SQL: st.sql, Args: st.args(s.values(queue, one, args[i]))}
	}
	numbers := make([][]number, len(batch))
	applied, err = consumer.Each(ctx, s.pool, sql, func(i int, rows pgx.Rows) (has bool, err error) {
		numbers[i], err = pgx.CollectRows(rows, pgx.RowToStructByPos[number])
		return len(numbers[i]) > 0, err
	}, func(i int, err error) {
		if c := pgpool.Constraint(err); c != adoptedConstraint && c != shownConstraint { // which Apply mends
			failed(i, err)
		}
	})
	if err != nil {
		return nil, effects, fmt.Errorf("apply messages one by one: %w", err)
	}
	for i, has := range applied {
		if has {
			one := args[i].applied(batch[i:i+1], numbers[i]).Batch
			effects.Notifications = append(effects.Notifications, one.Notifications...)
			effects.Feed = append(effects.Feed, one.Feed...)
		}
	}
	return applied, effects, nil
}
