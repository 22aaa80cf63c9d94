package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A canceller cancels deliveries that its channel does not send.
type canceller struct{ pool *pgxpool.Pool }

// CancelDelivery cancels a waiting delivery, for the reason.
func (c canceller) CancelDelivery(ctx context.Context, channel string, delivery int64, reason string) error {
	_, err := c.pool.Exec(ctx, `
		update deliveries set state = 'cancelled', last_class = $3, done_at = now()
		where id = $1 and channel = $2 and state = 'waiting'`, delivery, channel, reason)
	if err != nil {
		return fmt.Errorf("cancel delivery: %w", err)
	}
	return nil
}
