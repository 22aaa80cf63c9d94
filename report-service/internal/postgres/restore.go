package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

const (
	// versionsPerRestore is by how much the versions of all reports rise with a
	// restore: by more than any report has changes.
	versionsPerRestore = 1_000_000
	// startOverRows is how many reports get another version at a time.
	startOverRows = 1000
)

// StartOver raises the versions of all reports above those that were lost. A
// version that clients have seen does not come again for something else: what
// they show is older than whatever comes, and a change that they ask for with
// If-Match fits no report that they have not read again.
func (s *Upkeep) StartOver(ctx context.Context, restores int) error {
	for after := uuid.Nil; ; {
		var found int
		var last *uuid.UUID
		err := s.db.pool.QueryRow(ctx, `
			with places as materialized (
				select id from reports where id > $1 order by id limit $2
			), raised as (
				update reports r set version = r.version % $4 + $3
				from places p where r.id = p.id and r.version < $3
			)
			select count(*), (select id from places order by id desc limit 1) from places`,
			after, startOverRows, int64(restores)*versionsPerRestore, int64(versionsPerRestore)).Scan(&found, &last)
		if err != nil {
			return fmt.Errorf("raise versions: %w", err)
		}
		if found < startOverRows {
			return nil
		}
		after = *last
	}
}
