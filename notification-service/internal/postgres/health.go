package postgres

import (
	"context"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// maxFailing is how many failing endpoints are named at most.
const maxFailing = 20

// FailingEndpoints returns the names of endpoints that were disabled because they
// failed, of enabled ones that have failed for half of the time after which they are
// disabled, and of others whose circuit is open. An endpoint without a description is
// named by its host: its address is secret.
func (s *Ledger) FailingEndpoints(ctx context.Context) (disabled, disabling, failing []string, err error) {
	var how int
	var name string
	err = pgpool.ForEach(ctx, s.pool, "list failing webhooks", []any{&how, &name}, func() error {
		list := []*[]string{&disabled, &disabling, &failing}[how]
		*list = append(*list, name)
		return nil
	}, `
		select case when e.state = 'disabled' then 0 when e.disable_at is not null then 1 else 2 end, coalesce(nullif(e.description, ''), substring(e.url from '^[a-z]+://(?:[^@/]*@)?([^/?#]+)'), '')
		from webhook_endpoints e left join lanes l on l.channel = 'webhook' and l.lane = e.id::text
		where e.state = 'disabled' and e.state_reason in ('failing', 'gone') or e.state = 'enabled' and (l.open_until > now() or e.disable_at is not null)
		order by 1, 2 limit $1`, maxFailing)
	if err != nil {
		return nil, nil, nil, err
	}
	return disabled, disabling, failing, nil
}
