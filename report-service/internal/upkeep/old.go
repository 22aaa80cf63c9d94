package upkeep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// oldAtOnce is how many reports lose their words in a transaction, which is as long as
	// somebody who opens one of them may wait.
	oldAtOnce = 100
	// partTimeout is for a file that is stored while reports are locked, and fileTimeout
	// for any other.
	partTimeout = 4 * time.Second
	fileTimeout = 30 * time.Second
	// maxMonth is far above what the reports of a month take.
	maxMonth = 1 << 30
)

// The keys of the archive: a file and its checksum for each month, and until a month is
// complete the parts of it, each named by its first report.
const (
	archiveFolder = "archive/"
	archiveParts  = archiveFolder + "parts/"
)

func archiveKey(m report.YearMonth) string { return archiveFolder + "reports-" + string(m) + ".jsonl" }

func archiveSum(m report.YearMonth) string { return archiveFolder + "reports-" + string(m) + ".sha256" }

func partsOf(m report.YearMonth) string { return archiveParts + string(m) + "/" }

// An oldPlace is how far a run is: in which month, and whether its file is complete, so
// that the parts may go.
type oldPlace struct {
	Month  report.YearMonth `json:"month"`
	Whole  bool             `json:"whole,omitempty"`
	Listed bool             `json:"listed,omitempty"` // no parts are left of a run before
}

// OldReportsJob returns the job that takes the words from reports that were closed longer
// ago than keep, a calendar month at a time. What they had stands in files first.
//
// A part of a month's file is stored before the transaction that removes its words
// commits. If the process dies in between, the part is stored once more. Parts are deleted
// in a step after the one that has made a file of them. So each report with words has
// them in the database, and each without in the archive.
func (s *Store) OldReportsJob(keep retention.Period, archive blob.Store) schedule.Job {
	o := &oldReports{db: postgres.NewOld(s.db), keep: time.Duration(keep), archive: archive}
	return schedule.Job{Name: "old_reports", When: schedule.Every(24 * time.Hour), Step: o.step}
}

type oldReports struct {
	db      *postgres.Old
	keep    time.Duration
	archive blob.Store
}

func (o *oldReports) step(ctx context.Context, tx pgx.Tx, run schedule.Run) (schedule.Progress, error) {
	if o.keep == 0 {
		return schedule.Progress{Last: true}, nil
	}
	began := time.Now()
	var at oldPlace
	if run.Cursor != nil {
		if err := json.Unmarshal(run.Cursor, &at); err != nil {
			return schedule.Progress{}, fmt.Errorf("read cursor: %w", err)
		}
	}
	next, done, err := o.work(ctx, tx, at)
	if err != nil {
		return schedule.Progress{}, err
	}
	cursor, err := json.Marshal(next)
	// Four fifths of the time are others'.
	return schedule.Progress{Cursor: cursor, Done: int64(done), Pause: 4 * time.Since(began), Last: next == (oldPlace{})}, err
}

// work does a step from a place, and returns the next place; the zero place is the end.
func (o *oldReports) work(ctx context.Context, tx pgx.Tx, at oldPlace) (next oldPlace, done int, err error) {
	switch {
	case at.Whole:
		return oldPlace{Listed: true}, 0, o.deleteParts(ctx, at.Month)
	case at.Month != "":
		done, err := o.removeWords(ctx, tx, at.Month)
		if err != nil || done > 0 {
			return at, done, err
		}
		at.Whole = true
		return at, 0, o.complete(ctx, tx, at.Month)
	case !at.Listed: // a run that failed may have left parts of a month that has no words any more
		for part, err := range o.archive.List(ctx, archiveParts) {
			if err != nil {
				return at, 0, fmt.Errorf("list the archive: %w", err)
			}
			month, _, _ := strings.Cut(strings.TrimPrefix(part.Key, archiveParts), "/")
			return oldPlace{Month: report.YearMonth(month), Listed: true}, 0, nil
		}
	}
	from, _, err := report.YearMonthOf(time.Now().Add(-o.keep)).Bounds() // a month that has ended
	if err != nil {
		return at, 0, err
	}
	month, ok, err := o.db.FirstMonth(ctx, tx, from)
	if err != nil || !ok {
		return oldPlace{}, 0, err
	}
	return oldPlace{Month: month, Listed: true}, 0, nil
}

// removeWords stores some reports of a month, and takes their words.
func (o *oldReports) removeWords(ctx context.Context, tx pgx.Tx, m report.YearMonth) (int, error) {
	records, err := o.db.Lock(ctx, tx, m, oldAtOnce)
	if err != nil || len(records) == 0 {
		return 0, err
	}
	ids := make([]uuid.UUID, len(records))
	var part bytes.Buffer
	for i, r := range records {
		ids[i] = r.ID
		part.Write(r.JSON)
		part.WriteByte('\n')
	}
	if err := o.put(ctx, partsOf(m)+ids[0].String()+".jsonl", part.Bytes(), partTimeout); err != nil {
		return 0, err
	}
	return len(records), o.db.RemoveWords(ctx, tx, ids)
}

// complete makes one file of the parts of a month, and of the month's file if there is
// one: a database that was restored has words once more.
func (o *oldReports) complete(ctx context.Context, tx pgx.Tx, m report.YearMonth) error {
	// The transaction waits for the storage, and holds no lock that anybody waits for.
	if err := pgpool.Exec(ctx, tx, "set timeout", `select set_config('idle_in_transaction_session_timeout', '10min', true)`); err != nil {
		return err
	}
	lines := map[uuid.UUID][]byte{}
	for part, err := range o.archive.List(ctx, partsOf(m)) {
		if err != nil {
			return fmt.Errorf("list the archive: %w", err)
		}
		if err := o.read(ctx, part.Key, lines); err != nil {
			return err
		}
	}
	// A part whose transaction did not commit may have a report that was opened again.
	archived, err := o.db.Archived(ctx, tx, slices.Collect(maps.Keys(lines)))
	if err != nil {
		return err
	}
	all := map[uuid.UUID][]byte{}
	if err := o.read(ctx, archiveKey(m), all); err != nil && !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	for _, id := range archived {
		all[id] = lines[id]
	}
	var file bytes.Buffer
	for _, id := range slices.SortedFunc(maps.Keys(all), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) {
		file.Write(all[id])
		file.WriteByte('\n')
	}
	if err := o.put(ctx, archiveKey(m), file.Bytes(), fileTimeout); err != nil {
		return err
	}
	sum := sha256.Sum256(file.Bytes())
	return o.put(ctx, archiveSum(m), []byte(hex.EncodeToString(sum[:])+"  "+strings.TrimPrefix(archiveKey(m), archiveFolder)+"\n"), fileTimeout)
}

// read adds the lines of a file by the ids of their reports.
func (o *oldReports) read(ctx context.Context, key string, lines map[uuid.UUID][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	data, err := o.archive.Get(ctx, key, maxMonth)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		var r struct{ ID uuid.UUID }
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read the archive: %s: %w", key, err)
		}
		lines[r.ID] = line
	}
	return nil
}

func (o *oldReports) put(ctx context.Context, key string, data []byte, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := o.archive.Put(ctx, key, bytes.NewReader(data), int64(len(data))); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

func (o *oldReports) deleteParts(ctx context.Context, m report.YearMonth) error {
	for part, err := range o.archive.List(ctx, partsOf(m)) {
		if err == nil {
			err = o.archive.Delete(ctx, part.Key)
		}
		if err != nil {
			return fmt.Errorf("delete parts of the archive: %w", err)
		}
	}
	return nil
}
