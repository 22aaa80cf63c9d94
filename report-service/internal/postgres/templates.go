package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Templates returns the response templates, by id.
func (s *Workbench) Templates(ctx context.Context) ([]report.Template, error) {
	return collect(ctx, s.db.pool, "select templates", pgx.RowToStructByPos[report.Template],
		`select id, title, text, status from response_templates order by id`)
}

// SetTemplates replaces all response templates.
func (s *Workbench) SetTemplates(ctx context.Context, templates []report.Template) error {
	var replace pgx.Batch
	replace.Queue(`lock table response_templates in share row exclusive mode`) // one at a time: two of them would mix
	replace.Queue(`delete from response_templates`)
	for _, t := range templates {
		replace.Queue(`insert into response_templates (id, title, text, status) values ($1, $2, $3, $4)`, t.ID, t.Title, t.Text, t.Status)
	}
	err := pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, &replace).Close() })
	if err != nil {
		return fmt.Errorf("replace templates: %w", err)
	}
	return nil
}
