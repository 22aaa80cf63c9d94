package settings

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// switchLife is how long a replica goes by the switch as it read it.
const switchLife = 2 * time.Second

// GuestSwitch returns whether there are guests now, as it was within the last seconds.
func (c *City) GuestSwitch(ctx context.Context) (report.GuestSwitch, error) {
	return c.guests.get(ctx, switchLife, func(ctx context.Context) (report.GuestSwitch, error) {
		return readGuestSwitch(ctx, c.pool)
	})
}

func readGuestSwitch(ctx context.Context, q pgpool.Querier) (report.GuestSwitch, error) {
	rows, err := pgpool.Collect(ctx, q, "read switch of guests", pgx.RowToStructByPos[report.GuestSwitch],
		`select open, reason, changed_at from guest_switch`)
	if err != nil {
		return report.GuestSwitch{}, err
	}
	if len(rows) == 0 {
		return report.GuestSwitch{Open: true}, nil
	}
	return rows[0], nil
}

// SetGuestSwitch opens or closes reporting without an account, and writes who did.
func (c *City) SetGuestSwitch(ctx context.Context, open bool, reason string, by report.Official) (report.GuestSwitch, error) {
	var now report.GuestSwitch
	err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		if err := pgpool.Exec(ctx, tx, "lock switch of guests", `lock table guest_switch in share row exclusive mode`); err != nil {
			return err
		}
		before, err := readGuestSwitch(ctx, tx)
		if err != nil || before.Open == open {
			now = before
			return err
		}
		at := time.Now().UTC().Truncate(time.Microsecond)
		now = report.GuestSwitch{Open: open, Reason: reason, ChangedAt: &at}
		err = pgpool.Exec(ctx, tx, "write switch of guests", `
			insert into guest_switch (open, reason, changed_at) values ($1, $2, $3)
			on conflict (one) do update set open = excluded.open, reason = excluded.reason, changed_at = excluded.changed_at`, open, reason, at)
		if err != nil {
			return err
		}
		return Record(ctx, tx, by, "guests", map[string]any{"open": open, "reason": reason})
	})
	if err != nil {
		return report.GuestSwitch{}, err
	}
	c.guests.drop()
	return now, nil
}
