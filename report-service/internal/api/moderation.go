package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A ModerationStore hides and redacts reports, and keeps complaints about them.
type ModerationStore interface {
	Hide(ctx context.Context, id uuid.UUID, reason string, ifMatch report.Versions, by report.Official) error
	Unhide(ctx context.Context, id uuid.UUID, ifMatch report.Versions, by report.Official) error
	SetVisibility(ctx context.Context, id uuid.UUID, v report.Visibility, ifMatch report.Versions, by report.Official) error
	Redact(ctx context.Context, id uuid.UUID, r report.Rewording, by report.Official) error
	Complain(ctx context.Context, id uuid.UUID, c report.Complaint, userID string) error
	DismissComplaints(ctx context.Context, id uuid.UUID, by report.Official) error
	Flagged(ctx context.Context, limit int) ([]report.FlaggedReport, error)
}

type moderationHandlers struct {
	moderation            ModerationStore
	workbench             workbenchHandlers  // answers with the details that officials see
	complaining           *ratelimit.Limiter // by user
	complainingNamelessly *ratelimit.Limiter // by address
}

// abusePerAddress is how often clients without an account may report abuse: more than
// one person does, and few enough for officials to read. Many people may share an
// address (a school, a mobile carrier); those who are refused can sign in.
var abusePerAddress = ratelimit.Limit{Turns: 20, Period: time.Hour}

func (h moderationHandlers) operations() operations {
	return operations{
		"hideReport":    {Handler: h.hideReport, Timeout: changeTimeout},
		"unhideReport":  {Handler: h.unhideReport, Timeout: changeTimeout},
		"setVisibility": {Handler: h.setVisibility, Timeout: changeTimeout},
		"redactReport":  {Handler: h.redactReport, Timeout: changeTimeout},
		"reportAbuse":   {Handler: limitedForAll(h.complaining, h.complainingNamelessly, h.reportAbuse), Timeout: service.DefaultTimeout},
		"dismissAbuse":  {Handler: h.dismissAbuse, Timeout: service.DefaultTimeout},
		"listAbuse":     {Handler: h.listAbuse, Timeout: service.DefaultTimeout},
	}
}

// hideReport handles PUT /reports/{id}/hidden.
func (h moderationHandlers) hideReport(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.Hiding](r)
	if err != nil {
		return err
	}
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	if err := h.moderation.Hide(r.Context(), pathID(r), req.Reason, versions, caller(r).AsOfficial()); err != nil {
		return fmt.Errorf("hide report: %w", err)
	}
	return h.workbench.getWork(w, r)
}

// unhideReport handles DELETE /reports/{id}/hidden.
func (h moderationHandlers) unhideReport(w http.ResponseWriter, r *http.Request) error {
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	if err := h.moderation.Unhide(r.Context(), pathID(r), versions, caller(r).AsOfficial()); err != nil {
		return fmt.Errorf("show report: %w", err)
	}
	return h.workbench.getWork(w, r)
}

// setVisibility handles PUT /reports/{id}/visibility.
func (h moderationHandlers) setVisibility(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.ReportVisibility](r)
	if err != nil {
		return err
	}
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	if err := h.moderation.SetVisibility(r.Context(), pathID(r), report.Visibility(req.Visibility), versions, caller(r).AsOfficial()); err != nil {
		return fmt.Errorf("set visibility: %w", err)
	}
	return h.workbench.getWork(w, r)
}

// redactReport handles PATCH /reports/{id}/words.
func (h moderationHandlers) redactReport(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.Rewording](r)
	if err != nil {
		return err
	}
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	words := report.Rewording{
		Title: req.Title, Description: req.Description, Notes: make(map[int64]string, len(req.Notes)),
		Reason: strings.TrimSpace(req.Reason), IfMatch: versions,
	}
	for i, n := range req.Notes {
		if _, given := words.Notes[n.Version]; given {
			return fault.NewInvalid(fmt.Sprintf("/notes/%d/version", i), "must not name a note twice")
		}
		words.Notes[n.Version] = strings.TrimSpace(n.Note)
	}
	if err := h.moderation.Redact(r.Context(), pathID(r), words, caller(r).AsOfficial()); err != nil {
		return fmt.Errorf("redact report: %w", err)
	}
	return h.workbench.getWork(w, r)
}

// reportAbuse handles POST /reports/{id}/abuse.
func (h moderationHandlers) reportAbuse(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.Abuse](r)
	if err != nil {
		return err
	}
	complaint := report.Complaint{Reason: report.AbuseReason(req.Reason), Text: strings.TrimSpace(req.Text)}
	if err := h.moderation.Complain(r.Context(), pathID(r), complaint, caller(r).ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// dismissAbuse handles DELETE /reports/{id}/abuse.
func (h moderationHandlers) dismissAbuse(w http.ResponseWriter, r *http.Request) error {
	if err := h.moderation.DismissComplaints(r.Context(), pathID(r), caller(r).AsOfficial()); err != nil {
		return err
	}
	return h.workbench.getWork(w, r)
}

// listAbuse handles GET /reports/queue/abuse.
func (h moderationHandlers) listAbuse(w http.ResponseWriter, r *http.Request) error {
	limit, err := intParam(r, "limit")
	if err != nil {
		return err
	}
	suspects, err := h.moderation.Flagged(r.Context(), limit)
	if err != nil {
		return err
	}
	out := reportapi.AbuseList{Reports: make([]reportapi.Suspect, len(suspects))}
	for i, suspect := range suspects {
		out.Reports[i] = reportapi.Suspect{Report: taskOf(suspect.Task), Entries: make([]reportapi.AbuseEntry, len(suspect.Complaints))}
		for j, c := range suspect.Complaints {
			out.Reports[i].Entries[j] = reportapi.AbuseEntry{Reason: reportapi.AbuseReason(c.Reason), Text: c.Text, At: c.At}
		}
	}
	return service.Encode(w, http.StatusOK, out)
}
