package postgres

import (
	"context"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// MaxCommits is how many batches are written at a time.
const MaxCommits = maxCommits

// SetResolutions changes what the city asks of its resolutions.
func (db *DB) SetResolutions(r report.Resolutions) { db.rules.Resolutions = r }

// Panic makes a change that panics when it is decided.
func (db *DB) Panic(ctx context.Context) error { return db.committer.do(ctx, panicking{}) }

type panicking struct{ subjectless }

func (panicking) write(*writeBatch) error { panic("on purpose") }

// A subjectless change touches nothing and writes nothing.
type subjectless struct{}

func (subjectless) scope() scope            { return scope{} }
func (subjectless) read(*readBatch)         {}
func (subjectless) write(*writeBatch) error { return nil }
