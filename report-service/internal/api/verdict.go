package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// giveVerdict handles PUT /reports/{id}/verdict.
func (h reportHandlers) giveVerdict(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.NewVerdict](r)
	if err != nil {
		return err
	}
	v, err := h.reports.GiveVerdict(r.Context(), pathID(r), caller(r).ID, report.NewFixVerdict(req.Fixed, req.Text, time.Now()))
	if err != nil {
		return fmt.Errorf("give verdict: %w", err)
	}
	return service.Encode(w, http.StatusOK, verdictOf(v))
}

// keepResolved handles POST /reports/{id}/verdict/decision.
func (h workbenchHandlers) keepResolved(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.KeptResolved](r)
	if err != nil {
		return err
	}
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	err = h.reports.Keep(r.Context(), pathID(r), report.Keep{Note: req.Note, By: caller(r).AsOfficial(), IfMatch: versions})
	if err != nil {
		return fmt.Errorf("keep resolved: %w", err)
	}
	return h.getWork(w, r)
}
