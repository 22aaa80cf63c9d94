package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// failingHalfSQL is the condition of an enabled endpoint that has failed for half of $1
// or longer, without a success in between. Its lane is l.
const failingHalfSQL = `l.channel = 'webhook' and l.lane = e.id::text and e.state = 'enabled' and l.failing_since <= now() - $1::interval / 2`

// WarnOfFailing marks enabled endpoints that have failed for half of disableAfter, once
// until they succeed or are disabled, and has the operators mailed of each. It returns
// those, and how many endpoints are marked in all. Any number of workers may call it.
func (s *Endpoints) WarnOfFailing(ctx context.Context, disableAfter time.Duration) (warned []uuid.UUID, marked int, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := pgpool.Exec(ctx, tx, "take marks from webhooks that recovered", `
			update webhook_endpoints e set disable_at = null
			where disable_at is not null and not exists (select from lanes l where `+failingHalfSQL+`)`, disableAfter)
		if err != nil {
			return err
		}
		warned, err = pgpool.Collect(ctx, tx, "mark failing webhooks", pgx.RowTo[uuid.UUID], `
			update webhook_endpoints e set disable_at = l.failing_since + $1::interval from lanes l
			where e.disable_at is null and `+failingHalfSQL+` returning e.id`, disableAfter)
		if err != nil {
			return err
		}
		marked, err = pgpool.Value[int](ctx, tx, "count failing webhooks", `select count(*) from webhook_endpoints where disable_at is not null`)
		if err != nil {
			return err
		}
		if !slices.Contains(s.notices, email.Operators) {
			return nil
		}
		for _, id := range warned {
			if err := NoticeOperators(ctx, tx, email.EndpointFailing, id); err != nil {
				return err
			}
		}
		return nil
	})
	return warned, marked, err
}

// NoticeOperators writes the mail of that kind that notifies operators of an endpoint.
func NoticeOperators(ctx context.Context, tx pgx.Tx, kind string, id uuid.UUID) error {
	body, err := json.Marshal(email.NoticedEndpoint{ID: id})
	if err != nil {
		return fmt.Errorf("encode notice: %w", err)
	}
	return pgpool.Exec(ctx, tx, "write notice", `
		insert into deliveries (channel, lane, target, message_id, kind, body, not_after)
		values ($1, $2, $3, $4::text || '@' || extract(epoch from now()), $5, $6, now() + $7::interval)`,
		email.Channel, email.NoticeLane, email.Operators, id.String(), kind, body, email.Lifetime)
}
