package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A canceller cancels deliveries that its channel does not send.
type canceller struct{ pool *pgxpool.Pool }

// CancelDelivery cancels a waiting delivery, for the reason.
func (c canceller) CancelDelivery(ctx context.Context, channel string, delivery int64, reason string) error {
	return pgpool.Exec(ctx, c.pool, "cancel delivery", `
		update deliveries set state = 'cancelled', last_class = $3, done_at = now()
		where id = $1 and channel = $2 and state = 'waiting'`, delivery, channel, reason)
}
