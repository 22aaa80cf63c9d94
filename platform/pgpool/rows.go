package pgpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Collect returns all rows of a query, each read by scan; what describes the query in
// errors.
func Collect[T any](ctx context.Context, q Querier, what string, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, _ := q.Query(ctx, sql, args...) // reading the rows returns its error, too
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return all, nil
}

// One returns the only row of a query, read by scan, or the error none if there is no row;
// what describes the query in other errors.
func One[T any](ctx context.Context, q Querier, what string, none error, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	rows, _ := q.Query(ctx, sql, args...) // reading the rows returns its error, too
	one, err := pgx.CollectExactlyOneRow(rows, scan)
	return one, Found(err, what, none)
}

// ForEach calls do after it has read each row of a query into places; what describes the
// query in errors.
func ForEach(ctx context.Context, q Querier, what string, places []any, do func() error, sql string, args ...any) error {
	rows, _ := q.Query(ctx, sql, args...) // reading the rows returns its error, too
	if _, err := pgx.ForEachRow(rows, places, do); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Value returns the one value of a query; what describes the query in errors.
func Value[T any](ctx context.Context, q Querier, what, sql string, args ...any) (value T, err error) {
	if err := q.QueryRow(ctx, sql, args...).Scan(&value); err != nil {
		return value, fmt.Errorf("%s: %w", what, err)
	}
	return value, nil
}

// An Executer is a pool, a connection or a transaction.
type Executer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Exec executes a statement; what describes it in errors.
func Exec(ctx context.Context, e Executer, what, sql string, args ...any) error {
	if _, err := e.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Found returns an error of reading one row: none, which may be nil, if there is no row, and
// any other with what was done.
func Found(err error, what string, none error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return none
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// OrNull returns t as an argument of a statement; the zero time is null.
func OrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
