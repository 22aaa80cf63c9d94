package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// maxFailing is how many failing endpoints are named at most.
const maxFailing = 20

// FailingEndpoints returns the names of endpoints that were disabled because they
// failed, and of enabled ones whose circuit is open. An endpoint without a
// description is named by its host: its address is secret.
func (s *Ledger) FailingEndpoints(ctx context.Context) (disabled, failing []string, err error) {
	rows, err := s.pool.Query(ctx, `
		select e.state = 'disabled', coalesce(nullif(e.description, ''), substring(e.url from '^[a-z]+://(?:[^@/]*@)?([^/?#]+)'), '')
		from webhook_endpoints e left join lanes l on l.channel = 'webhook' and l.lane = e.id::text
		where e.state = 'disabled' and e.state_reason in ('failing', 'gone') or e.state = 'enabled' and l.open_until > now()
		order by 1, 2 limit $1`, maxFailing)
	if err != nil {
		return nil, nil, fmt.Errorf("list failing webhooks: %w", err)
	}
	var off bool
	var name string
	_, err = pgx.ForEachRow(rows, []any{&off, &name}, func() error {
		if off {
			disabled = append(disabled, name)
		} else {
			failing = append(failing, name)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list failing webhooks: %w", err)
	}
	return disabled, failing, nil
}
