package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// enqueue adds the outbox row of m, which is about a report of reporterID. The
// lock on the report is held by then. A message that breaks the contract fails
// the change: no reader would accept it.
func (s *Store) enqueue(ctx context.Context, w *writes, m event.Message, reporterID string) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("message %s breaks the contract: %w", m.Key(), err)
	}
	id, version := m.About().ReportID, m.About().ReportVersion
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
	w.outbox = append(w.outbox, outboxRow{string(m.Key()), payload, id, shards.Of(id), version, headers})
	return nil
}
