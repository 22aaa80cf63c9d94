package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// abusePerAddress is how often clients without an account may report abuse: more than
// one person does, and few enough for officials to read. Many people may share an
// address (a school, a mobile carrier); those who are refused can sign in.
var abusePerAddress = ratelimit.Limit{Turns: 20, Period: time.Hour}

// Moderation hides and redacts reports, and takes complaints about them.
type Moderation struct {
	Store   *postgres.Moderation
	Work    Work            // answers with the details that officials see
	PerUser ratelimit.Limit // complaints
}

// Operations are those on what may not be shown.
func (h Moderation) Operations() openapi.Operations {
	complain := limitedForAll(ratelimit.New(h.PerUser), ratelimit.New(abusePerAddress), service.Decoded(h.reportAbuse))
	return openapi.Operations{
		"hideReport":    {Handler: answeredTo(h.hideReport), Timeout: changeTimeout},
		"unhideReport":  {Handler: answered(h.unhideReport), Timeout: changeTimeout},
		"setVisibility": {Handler: answeredTo(h.setVisibility), Timeout: changeTimeout},
		"redactReport":  {Handler: answeredTo(h.redactReport), Timeout: changeTimeout},
		"reportAbuse":   {Handler: complain, Timeout: service.DefaultTimeout},
		"dismissAbuse":  {Handler: answered(h.dismissAbuse), Timeout: service.DefaultTimeout},
		"listAbuse":     {Handler: answered(h.listAbuse), Timeout: service.DefaultTimeout},
	}
}

// hideReport handles PUT /reports/{id}/hidden.
func (h Moderation) hideReport(r *http.Request, req reportapi.Hiding) (reportapi.Work, error) {
	return h.Work.after(r, h.Store.Hide(r.Context(), pathID(r), req.Reason, ifMatch(r), user(r).AsOfficial()))
}

// unhideReport handles DELETE /reports/{id}/hidden.
func (h Moderation) unhideReport(r *http.Request) (reportapi.Work, error) {
	return h.Work.after(r, h.Store.Unhide(r.Context(), pathID(r), ifMatch(r), user(r).AsOfficial()))
}

// setVisibility handles PUT /reports/{id}/visibility.
func (h Moderation) setVisibility(r *http.Request, req reportapi.ReportVisibility) (reportapi.Work, error) {
	return h.Work.after(r, h.Store.SetVisibility(r.Context(), pathID(r), report.Visibility(req.Visibility), strings.TrimSpace(req.Reason), ifMatch(r), user(r).AsOfficial()))
}

// redactReport handles PATCH /reports/{id}/words.
func (h Moderation) redactReport(r *http.Request, req reportapi.Rewording) (reportapi.Work, error) {
	words := report.Rewording{
		Title: req.Title, Description: req.Description, Notes: make(map[int64]string, len(req.Notes)),
		Reason: strings.TrimSpace(req.Reason), IfMatch: ifMatch(r),
	}
	for i, n := range req.Notes {
		if _, given := words.Notes[n.Version]; given {
			return reportapi.Work{}, fault.NewInvalid(fmt.Sprintf("/notes/%d/version", i), "must not name a note twice")
		}
		words.Notes[n.Version] = strings.TrimSpace(n.Note)
	}
	return h.Work.after(r, h.Store.Redact(r.Context(), pathID(r), words, user(r).AsOfficial()))
}

// reportAbuse handles POST /reports/{id}/abuse.
func (h Moderation) reportAbuse(w http.ResponseWriter, r *http.Request, req reportapi.Abuse) error {
	complaint := report.Complaint{Reason: report.AbuseReason(req.Reason), Text: strings.TrimSpace(req.Text)}
	if err := h.Store.Complain(r.Context(), pathID(r), complaint, user(r).ID); err != nil {
		return err
	}
	return service.NoContent(w)
}

// dismissAbuse handles DELETE /reports/{id}/abuse.
func (h Moderation) dismissAbuse(r *http.Request) (reportapi.Work, error) {
	return h.Work.after(r, h.Store.DismissComplaints(r.Context(), pathID(r), user(r).AsOfficial()))
}

// listAbuse handles GET /reports/queue/abuse.
func (h Moderation) listAbuse(r *http.Request) (reportapi.AbuseList, error) {
	suspects, err := h.Store.Flagged(r.Context(), intParam(r, "limit"), user(r))
	return reportapi.AbuseList{Reports: service.Each(suspects, func(f report.FlaggedReport) reportapi.Suspect {
		return reportapi.Suspect{Report: taskOf(f.Task), Entries: service.Each(f.Complaints, func(c report.Complaint) reportapi.AbuseEntry {
			return reportapi.AbuseEntry{Reason: reportapi.AbuseReason(c.Reason), Text: c.Text, At: c.At}
		})}
	})}, err
}
