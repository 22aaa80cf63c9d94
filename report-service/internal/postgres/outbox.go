package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/service"
)

// shards is the number of shards that the relays share among them.
const shards = 16

// enqueue adds the outbox row of m, which is about a report of reporterID. The
// lock on the report is held by then.
func (s *Store) enqueue(ctx context.Context, w *writes, m event.Message, reporterID string) error {
	id, version := m.Report()
	payload, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	headers, err := json.Marshal(map[string]string{
		event.TraceHeader:     service.TraceFrom(ctx),
		event.RecipientHeader: s.keys.Seal(id, reporterID),
	})
	if err != nil {
		return fmt.Errorf("encode headers: %w", err)
	}
	w.outbox = append(w.outbox, outboxRow{string(m.Key()), payload, id, version, headers})
	return nil
}

// shardOf is FNV-1a over the id's bytes. It must never change: rows of one
// report in two shards would lose their order.
func shardOf(id uuid.UUID) int16 {
	h := fnv.New32a()
	h.Write(id[:])
	return int16(h.Sum32() % shards)
}
