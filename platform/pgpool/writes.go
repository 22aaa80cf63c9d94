package pgpool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
)

const (
	// writesFor is for how long what a probe found is the answer to others.
	writesFor = time.Second
	// advanceBy is how many numbers of a sequence one statement passes over, and
	// advanceMost how many are passed over at all.
	advanceBy, advanceMost = 500_000, 100_000_000
)

// Writes tells whether the service can write to its database. A server that
// answers may refuse every change all the same: a right was taken away, a table
// was renamed or is locked, a sequence is at its end, the server is read-only, its disk is
// full.
//
// It repairs one thing: a sequence that is behind its table, as after a restore
// of the tables alone, by COPY or by logical replication. The numbers that are
// taken are passed over, which any number of replicas may do at once.
type Writes struct {
	pool   *pgxpool.Pool
	tables []string
	log    zerolog.Logger

	mu  sync.Mutex
	at  time.Time // of the last probe
	err error     // its result
}

// NewWrites returns Writes for the tables of the database behind pool, all of
// which the service must be able to read and change.
func NewWrites(pool *pgxpool.Pool, tables []string, log zerolog.Logger) *Writes {
	return &Writes{pool: pool, tables: tables, log: log}
}

// Probe returns an error if the service cannot write. It changes no row.
func (w *Writes) Probe(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.at.IsZero() && time.Since(w.at) < writesFor {
		return w.err
	}
	w.err = w.probe(ctx)
	w.at = time.Now()
	return w.err
}

func (w *Writes) probe(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := w.lock(ctx, tx); err != nil {
			return err
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		return err
	}
	return w.sequences(ctx)
}

var errUndo = errors.New("the probe is rolled back")

// lock takes the lock that a change takes, on all tables, some pages of the disk, and the
// number of a transaction that writes.
func (w *Writes) lock(ctx context.Context, tx pgx.Tx) error {
	quoted := make([]string, len(w.tables))
	for i, table := range w.tables {
		quoted[i] = pgx.Identifier{table}.Sanitize()
	}
	for _, sql := range []string{
		`set local lock_timeout = '1s'`,
		`lock table ` + strings.Join(quoted, ", ") + ` in row exclusive mode`,
	} {
		if err := Exec(ctx, tx, "lock the tables", sql); err != nil {
			return err
		}
	}
	// Neither lock nor number needs room on the disk. This writes 20 pages into a temporary
	// file, which leaves nothing behind, neither rows nor write-ahead log.
	for _, sql := range []string{`set local work_mem = '64kB'`, `select count(*) from generate_series(1, 12000)`} {
		if err := Exec(ctx, tx, "write to the disk", sql); err != nil {
			return err
		}
	}
	var missing, readOnly string
	err := tx.QueryRow(ctx, `
		select coalesce(string_agg(right_ || ' on ' || name, ', ' order by name), ''), current_setting('transaction_read_only')
		from (select pg_current_xact_id()) writes, unnest($1::text[]) name, unnest('{select,insert,update,delete}'::text[]) right_
		where not has_table_privilege(to_regclass(quote_ident(name)), right_)`, w.tables).Scan(&missing, &readOnly)
	switch {
	case err != nil:
		return fmt.Errorf("check the rights: %w", err)
	case readOnly == "on":
		return errors.New("the database is read-only")
	case missing != "":
		return fmt.Errorf("the role has no right to %s", missing)
	}
	return nil
}

// A sequence numbers a column.
type sequence struct {
	Name, Table, Column string // quoted
	Last, End           int64
}

// sequencesSQL finds those of columns that an index finds the highest value of.
// The outbox is the exception: only what is pending is in order, and in an index.
const sequencesSQL = `
select quote_ident(s.relname), quote_ident(t.relname), quote_ident(a.attname), coalesce(pg_sequence_last_value(s.oid), q.seqstart - 1), q.seqmax
from pg_class t
join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = t.oid and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i')
join pg_class s on s.oid = d.objid and s.relkind = 'S'
join pg_sequence q on q.seqrelid = s.oid and q.seqincrement = 1
join pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid
where t.oid in (select to_regclass(quote_ident(name)) from unnest($1::text[]) name)
  and (t.relname = 'outbox_messages' or exists (
    select from pg_index i where i.indrelid = t.oid and i.indkey[0] = a.attnum and i.indpred is null))
order by s.relname`

// sequences returns an error if a sequence is at its end, and advances those
// that are behind their column.
func (w *Writes) sequences(ctx context.Context) error {
	sequences, err := Collect(ctx, w.pool, "list sequences", pgx.RowToStructByPos[sequence], sequencesSQL, w.tables)
	if err != nil {
		return err
	}
	for _, s := range sequences {
		if s.Last >= s.End {
			return fmt.Errorf("sequence %s is at its end", s.Name)
		}
		if err := w.advance(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writes) advance(ctx context.Context, s sequence) error {
	condition := ""
	if s.Table == "outbox_messages" {
		condition = " where status = 'pending'"
	}
	highest, err := Value[int64](ctx, w.pool, "read the highest number of "+s.Table, `select coalesce(max(`+s.Column+`), 0) from `+s.Table+condition)
	if err != nil {
		return err
	}
	if highest <= s.Last {
		return nil
	}
	// Rows may have been written since the sequence was read. Read again, it is
	// behind only if it is behind for good: a number is taken before its row is seen.
	last, err := Value[int64](ctx, w.pool, "read sequence "+s.Name, `select coalesce(pg_sequence_last_value($1::text::regclass), 0)`, s.Name)
	if err != nil {
		return err
	}
	behind := highest - last
	if behind <= 0 {
		return nil
	}
	if behind > advanceMost || highest >= s.End {
		return fmt.Errorf("sequence %s is behind its table; run as its owner: select setval('%s', (select max(%s) from %s))", s.Name, s.Name, s.Column, s.Table)
	}
	for behind > 0 {
		step := min(behind, advanceBy)
		err := Exec(ctx, w.pool, "advance sequence "+s.Name, `select count(nextval($1::text::regclass)) from generate_series(1, $2::bigint)`, s.Name, step)
		if err != nil {
			return err
		}
		behind -= step
	}
	w.log.Warn().Str("sequence", s.Name).Int64("to", highest).
		Msg("a sequence was behind its table, as after a restore of tables alone; the numbers that exist are passed over")
	return nil
}
