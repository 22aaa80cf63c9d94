package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Statement is the whole effect of a message.
type Statement struct {
	SQL  string // empty for a message that is left
	Args []any
}

// beginEach gives way early. Statements of several messages take their locks in no
// order that others know; whoever waits for this transaction while it waits for them
// goes on after a tenth of a second, long before PostgreSQL looks for a deadlock.
const beginEach = `begin; set local lock_timeout = '100ms'`

// lockNotAvailable is the SQLSTATE of a statement that has waited for a lock for too
// long.
const lockNotAvailable = "55P03"

// duplicate is the SQLSTATE of a row that exists. The others may be written, also where
// that stops the circuit breaker for this one.
const duplicate = "23505"

// Each executes the statements in one transaction, each under a savepoint, in one round
// trip and two more for each that fails. It returns which were executed. read gets their
// rows, by the place of the statement, and reports whether the effect is there; failed
// gets the error of a statement at once. What was executed is committed unless there is
// an error: the database is away, or the commit failed. After a statement that had to
// wait for a lock the rest is left.
func Each(ctx context.Context, pool *pgxpool.Pool, statements []Statement,
	read func(i int, rows pgx.Rows) (has bool, err error), failed func(i int, err error)) ([]bool, error) {
	executed := make([]bool, len(statements))
	var places []int // of the statements to execute
	for i, s := range statements {
		if s.SQL != "" {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		return executed, nil
	}
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{BeginQuery: beginEach}, func(tx pgx.Tx) error {
		for len(places) > 0 {
			n, err := executeEach(ctx, tx, statements, places, func(i int, rows pgx.Rows) (err error) {
				executed[i], err = read(i, rows)
				return err
			})
			if err == nil {
				return nil
			}
			refused, ok := errors.AsType[*pgconn.PgError](err)
			if !ok || failure.Classify(err) == failure.Away && refused.Code != duplicate {
				return err
			}
			executed[places[n]] = false
			if refused.Code != lockNotAvailable {
				failed(places[n], err)
			}
			if err := pgpool.Exec(ctx, tx, "take back a statement", `rollback to savepoint each`); err != nil {
				return err
			}
			if refused.Code == lockNotAvailable {
				return nil
			}
			places = places[n+1:]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return executed, nil
}

// executeEach executes the statements of places up to the first that fails, and returns
// how many it has executed, and the error of the next one.
func executeEach(ctx context.Context, tx pgx.Tx, statements []Statement, places []int, read func(i int, rows pgx.Rows) error) (n int, err error) {
	var batch pgx.Batch
	for _, i := range places {
		batch.Queue(`savepoint each`)
		batch.Queue(statements[i].SQL, statements[i].Args...)
	}
	results := tx.SendBatch(ctx, &batch)
	defer func() { err = errors.Join(err, results.Close()) }()
	for _, i := range places {
		if _, err := results.Exec(); err != nil {
			return n, fmt.Errorf("set a savepoint: %w", err)
		}
		rows, err := results.Query()
		if err == nil {
			err = read(i, rows)
			rows.Close()
			if err == nil {
				err = rows.Err()
			}
		}
		if err != nil {
			return n, fmt.Errorf("execute the statement of a message: %w", err)
		}
		n++
	}
	return n, nil
}
