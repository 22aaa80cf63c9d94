package notifier

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// firms is the name of the group, and of its queue without the usual beginning.
const firms = "firms"

// FirmsQueue is where messages wait of which firms get mails.
const FirmsQueue = "queue." + firms

// FirmGroup is the group of consumers that makes messages for firms deliveries of the ledger
// in pool.
func FirmGroup(pool *pgxpool.Pool, ring *event.Keyring) consumer.Group {
	keys := email.NewKeys(ring)
	return consumer.Group{
		Name: firms, Queues: []topology.Queue{{Name: FirmsQueue, Keys: []event.Key{event.FirmNoticeKey}}},
		Effect: consumer.InTx(pool, func(ctx context.Context, tx pgx.Tx, messages []consumer.Message) error {
			for _, m := range messages {
				notice, ok := m.Event.(*event.FirmNotice)
				if !ok {
					return failure.Refuse("not a message for a firm")
				}
				address, err := ring.Open(notice.JobID, notice.Mailbox)
				if err != nil || address == "" {
					return &failure.Error{Class: failure.Permanent, Text: "the firm's address does not open", Err: err}
				}
				if err := postgres.MailFirm(ctx, tx, m.ID, notice, keys.Lane(address)); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}
