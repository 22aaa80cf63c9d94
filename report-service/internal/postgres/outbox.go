package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/service"
)

// shards is the number of shards that the relays share among them.
const shards = 16

// enqueue queues the outbox row of m, which is about a report of reporterID,
// on b: the batch of a change whose lock on the report was taken before.
func (s *Store) enqueue(ctx context.Context, b *pgx.Batch, m event.Message, reporterID string) error {
	id, version := m.Report()
	payload, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	headers := map[string]string{
		event.TraceHeader:     service.TraceFrom(ctx),
		event.RecipientHeader: s.keys.Seal(id, reporterID),
	}
	b.Queue(`
		insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, headers)
		values ($1, $2, $3, $4, $5, $6, $7)`,
		uuid.Must(uuid.NewV7()), string(m.Key()), json.RawMessage(payload), id, version, shardOf(id), headers)
	return nil
}

// shardOf is FNV-1a over the id's bytes. It must never change: rows of one
// report in two shards would lose their order.
func shardOf(id uuid.UUID) int16 {
	h := fnv.New32a()
	h.Write(id[:])
	return int16(h.Sum32() % shards)
}
