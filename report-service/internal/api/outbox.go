package api

import (
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
)

// outboxStats handles GET /admin/outbox/stats.
func (s *server) outboxStats(w http.ResponseWriter, r *http.Request) error {
	stats, err := s.Outbox.Stats(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, outboxStatsOf(stats, s.Relay.State()))
}

// listOutbox handles GET /admin/outbox/messages.
func (s *server) listOutbox(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	filter := outbox.Filter{
		Status: outbox.Status(query.Get("status")), RoutingKey: query.Get("routing_key"), Cursor: query.Get("cursor"),
	}
	var err error
	if filter.Limit, err = strconv.Atoi(query.Get("limit")); err != nil {
		return invalid("limit", err)
	}
	if id := query.Get("report_id"); id != "" {
		filter.ReportID = uuid.MustParse(id) // the document let it pass
	}
	page, err := s.Outbox.List(r.Context(), filter)
	if err != nil {
		return err
	}
	if page.Next != "" {
		service.NextLink(w, r, page.Next)
	}
	return service.Encode(w, http.StatusOK, outboxPageOf(page))
}

// retryOutbox handles POST /admin/outbox/messages/{id}/retry.
func (s *server) retryOutbox(w http.ResponseWriter, r *http.Request) error {
	if err := s.Outbox.Retry(r.Context(), readerID(r), pathID(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// discardOutbox handles DELETE /admin/outbox/messages/{id}.
func (s *server) discardOutbox(w http.ResponseWriter, r *http.Request) error {
	if err := s.Outbox.Discard(r.Context(), readerID(r), pathID(r), r.URL.Query().Get("reason")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// retryAllOutbox handles POST /admin/outbox/messages/retry.
func (s *server) retryAllOutbox(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[BulkRetry](r)
	if err != nil {
		return err
	}
	retried, err := s.Outbox.RetryAll(r.Context(), readerID(r), string(req.RoutingKey))
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, BulkRetried{Retried: retried})
}

// outboxAudit handles GET /admin/outbox/audit.
func (s *server) outboxAudit(w http.ResponseWriter, r *http.Request) error {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		return invalid("limit", err)
	}
	entries, err := s.Outbox.Audit(r.Context(), limit)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, outboxAuditOf(entries))
}
