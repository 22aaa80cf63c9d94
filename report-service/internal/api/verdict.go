package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Verdicts are what reporters say about resolutions.
type Verdicts struct {
	Reports *postgres.Reports
	Work    Work
}

// Operations are those on verdicts.
func (h Verdicts) Operations() openapi.Operations {
	return openapi.Operations{
		"giveVerdict":  {Handler: service.Decoded(h.giveVerdict), Timeout: changeTimeout},
		"keepResolved": {Handler: service.Decoded(h.keepResolved), Timeout: changeTimeout},
	}
}

// giveVerdict handles PUT /reports/{id}/verdict.
func (h Verdicts) giveVerdict(w http.ResponseWriter, r *http.Request, req reportapi.NewVerdict) error {
	v, err := h.Reports.GiveVerdict(r.Context(), pathID(r), user(r).ID, report.NewFixVerdict(req.Fixed, req.Text, time.Now()))
	if err != nil {
		return fmt.Errorf("give verdict: %w", err)
	}
	return service.Encode(w, http.StatusOK, verdictOf(v))
}

// keepResolved handles POST /reports/{id}/verdict/decision.
func (h Verdicts) keepResolved(w http.ResponseWriter, r *http.Request, req reportapi.KeptResolved) error {
	err := h.Reports.Uphold(r.Context(), pathID(r), report.Uphold{Note: req.Note, By: user(r).AsOfficial(), IfMatch: ifMatch(r)})
	if err != nil {
		return fmt.Errorf("keep resolved: %w", err)
	}
	return h.Work.getWork(w, r)
}
