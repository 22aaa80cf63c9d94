package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/imports"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// importedAtOnce is how many reports of a file a statement writes.
const importedAtOnce = 1000

// Imports are reports of the system that the city used before.
type Imports struct{ db *DB }

// NewImports returns those in db.
func NewImports(db *DB) *Imports { return &Imports{db} }

// Add saves the reports of a file whose numbers are not known yet, all or none, and returns
// how many. Nothing announces them. A dry run only counts.
func (s *Imports) Add(ctx context.Context, f *imports.File, dryRun bool, by report.Official) (added int, err error) {
	err = pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		alone, err := pgpool.Value[bool](ctx, tx, "lock imports", `select pg_try_advisory_xact_lock(hashtextextended('imports', 0))`)
		if err != nil {
			return err
		}
		if !alone {
			return fault.New(fault.Conflict, "another file is being imported")
		}
		batch := make([]imports.Report, 0, importedAtOnce)
		add := func() error {
			n, err := s.add(ctx, tx, batch, dryRun)
			added, batch = added+n, batch[:0]
			return err
		}
		for r, err := range f.Reports() {
			if err != nil {
				return err
			}
			if batch = append(batch, r); len(batch) < importedAtOnce {
				continue
			}
			if err := add(); err != nil {
				return err
			}
		}
		if err := add(); err != nil || dryRun || added == 0 {
			return err
		}
		return settings.Record(ctx, tx, by, "import", map[string]any{"added": added, "known": f.Count - added})
	})
	return added, err
}

// add saves those of some reports that are not known, and returns how many.
func (s *Imports) add(ctx context.Context, tx pgx.Tx, batch []imports.Report, dryRun bool) (int, error) {
	known, err := pgpool.Collect(ctx, tx, "select imported reports", pgx.RowTo[string], `select number from imported_reports where number = any($1)`,
		array(batch, func(r imports.Report) string { return r.Number }))
	if err != nil {
		return 0, err
	}
	before := make(map[string]bool, len(known))
	for _, number := range known {
		before[number] = true
	}
	w := s.db.newWrites()
	var ids []uuid.UUID
	var numbers []string
	for _, r := range batch {
		if before[r.Number] {
			continue
		}
		ids, numbers = append(ids, r.Filing.ID), append(numbers, r.Number)
		w.filings = append(w.filings, newFiling{Filing: &r.Filing})
		for _, c := range r.History {
			w.history = append(w.history, historyRow{r.Filing.ID, c})
		}
	}
	if dryRun || len(ids) == 0 {
		return len(ids), nil
	}
	w.others.Queue(`insert into imported_reports (report_id, number) select * from unnest($1::uuid[], $2::text[])`, ids, numbers)
	if err := w.send(ctx, tx); err != nil {
		return 0, fmt.Errorf("import reports: %w", err)
	}
	return len(ids), nil
}
