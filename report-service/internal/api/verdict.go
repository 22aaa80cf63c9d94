package api

import (
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
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
		"giveVerdict":  {Handler: answeredTo(h.giveVerdict), Timeout: changeTimeout},
		"keepResolved": {Handler: answeredTo(h.keepResolved), Timeout: changeTimeout},
	}
}

// giveVerdict handles PUT /reports/{id}/verdict.
func (h Verdicts) giveVerdict(r *http.Request, req reportapi.NewVerdict) (reportapi.Verdict, error) {
	v, err := h.Reports.GiveVerdict(r.Context(), pathID(r), user(r).ID, report.NewFixVerdict(req.Fixed, req.Text, time.Now()))
	return verdictOf(v), err
}

// keepResolved handles POST /reports/{id}/verdict/decision.
func (h Verdicts) keepResolved(r *http.Request, req reportapi.KeptResolved) (reportapi.Work, error) {
	return h.Work.after(r, h.Reports.Uphold(r.Context(), pathID(r), report.Uphold{Note: req.Note, By: user(r).AsOfficial(), IfMatch: ifMatch(r)}))
}
