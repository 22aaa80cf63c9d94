package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// perOfficial is how often an official may file for others: more often than people can
// type, since a limit like that of residents would be reached on a busy day.
var perOfficial = ratelimit.Limit{Turns: 600, Period: time.Hour}

// Reports are what residents file and officials move.
type Reports struct {
	City
	Store   *postgres.Reports
	Guests  Guests
	PerUser ratelimit.Limit // filings

	filing  *ratelimit.Limiter // by user
	counter *ratelimit.Limiter // by official, for others
}

// Operations are those on a report as everybody sees it.
func (h Reports) Operations() openapi.Operations {
	h.filing, h.counter = ratelimit.New(h.PerUser), ratelimit.New(perOfficial)
	return openapi.Operations{
		"createReport":     {Handler: service.Decoded(h.createReport), Timeout: changeTimeout},
		"getReport":        {Handler: h.getReport, Timeout: service.DefaultTimeout},
		"getReportHistory": {Handler: answered(h.getHistory), Timeout: service.DefaultTimeout},
		"getOutlook":       {Handler: answered(h.getOutlook), Timeout: service.DefaultTimeout},
		"correctReport":    {Handler: service.Decoded(h.correctReport), Timeout: changeTimeout},
		"hideName":         {Handler: service.Decoded(h.hideName), Timeout: changeTimeout},
		"withdrawReport":   {Handler: h.withdrawReport, Timeout: changeTimeout},
		"changeStatus":     {Handler: service.Decoded(h.changeStatus), Timeout: changeTimeout},
		"replyToReport":    {Handler: service.Decoded(h.replyToReport), Timeout: changeTimeout},
	}
}

// createReport handles POST /reports. Paths are in logs: if officials who file for somebody
// had another one, it would tell which reports came to the counter.
func (h Reports) createReport(w http.ResponseWriter, r *http.Request, req reportapi.NewReport) error {
	by := user(r)
	turns, reporter := h.filing, report.Reporter{ID: by.ID, Name: by.Name, Guest: by.Guest}
	var intake *report.Intake
	if req.Source != "" {
		var err error
		if intake, err = report.NewIntake(report.Source(req.Source), report.Privacy(req.PrivacyLevel), by); err != nil {
			return err
		}
		turns, reporter = h.counter, report.NewCaller()
	}
	return withTurn(turns, by.ID, "too many requests of this user", func() error { return h.file(w, r, req, reporter, intake) })
}

// file files a report by somebody, with intake if an official does it for them.
func (h Reports) file(w http.ResponseWriter, r *http.Request, req reportapi.NewReport, by report.Reporter, intake *report.Intake) error {
	if err := h.Guests.mayFile(r, report.Privacy(req.PrivacyLevel)); err != nil {
		return err
	}
	category, err := h.Categories.Category(r.Context(), req.CategoryID)
	if err != nil {
		return err
	}
	draft := report.Report{
		Title: req.Title, Description: req.Description, Category: category,
		Address: req.Address, Privacy: report.Privacy(req.PrivacyLevel), Visibility: report.Visibility(req.Visibility),
	}
	if req.Latitude != nil && req.Longitude != nil {
		draft.Position = report.NewPosition(*req.Latitude, *req.Longitude)
	}
	if req.Asset != "" {
		asset, place, err := h.Store.Asset(r.Context(), req.Asset)
		if err != nil {
			return err
		}
		draft.Asset, draft.Position = asset, cmp.Or(draft.Position, place)
	}
	if err := report.CheckPosition(draft.Position, h.Bounds); err != nil {
		return err
	}
	if draft.Area, err = h.Areas.At(r.Context(), draft.Position); err != nil {
		return err
	}
	unusable := category.In(draft.Area.At(draft.Position)).Usable(append([]string{h.languageOf(r)}, h.Languages...)...)
	filing, err := report.New(draft, by, time.Now())
	if err != nil {
		return err
	}
	filing.Intake = intake
	// The answer is known before the report is stored, and is stored with it.
	answer := reportOf(filing.View())
	body, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	idempotent, err := idempotentOf(r, req)
	if err != nil {
		return err
	}
	if idempotent != nil {
		idempotent.Response, idempotent.Refusal = body, unusable
	} else if unusable != nil {
		return unusable
	}
	earlier, err := h.Store.Create(r.Context(), &filing, idempotent)
	if err != nil {
		return quotaProblem(err)
	}
	if earlier != nil {
		body, answer = earlier, reportapi.Report{}
		if err := json.Unmarshal(earlier, &answer); err != nil {
			return fmt.Errorf("read stored response: %w", err)
		}
	}
	if intake != nil { // what is stored does not tell that it is not the caller's own
		answer.Mine = false
		if body, err = json.Marshal(answer); err != nil {
			return fmt.Errorf("encode report: %w", err)
		}
	}
	w.Header().Set("Location", pathOf(answer.ID))
	w.Header().Set("ETag", report.ETag(answer.Version))
	service.WriteJSON(w, http.StatusCreated, body)
	return nil
}

// getReport handles GET /reports/{id}.
func (h Reports) getReport(w http.ResponseWriter, r *http.Request) error {
	view, err := h.Store.Get(r.Context(), pathID(r), user(r))
	return sendReport(w, r, view, err)
}

// sendReport answers with a report as its reader may see it, unless there is an error. The
// address of the report is sent where it is not the request's.
func sendReport(w http.ResponseWriter, r *http.Request, view report.View, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("ETag", report.ETag(view.Version))
	if r.URL.Path != pathOf(view.ID) {
		w.Header().Set("Content-Location", pathOf(view.ID))
	}
	return service.Encode(w, http.StatusOK, reportOf(view))
}

// getOutlook handles GET /reports/{id}/outlook.
func (h Reports) getOutlook(r *http.Request) (reportapi.Outlook, error) {
	outlook, err := h.Store.Outlook(r.Context(), pathID(r), user(r).ID)
	return reportapi.Outlook{DepartmentName: outlook.Department, DueAt: service.OrZero(outlook.DueAt)}, err
}

// changeStatus handles PATCH /reports/{id}/status.
func (h Reports) changeStatus(w http.ResponseWriter, r *http.Request, req reportapi.StatusChange) error {
	by := user(r)
	idempotent, err := idempotentAt(r, req, "status")
	if err != nil {
		return err
	}
	view, err := h.Store.Move(r.Context(), pathID(r), report.Move{
		To: report.Status(req.Status), Note: req.Note, By: by.ID, ByName: by.AsOfficial().Name, Scope: by.Scope, IfMatch: ifMatch(r), Idempotent: idempotent,
	})
	return sendReport(w, r, view.For(by), err)
}

// correctReport handles PATCH /reports/{id}.
func (h Reports) correctReport(w http.ResponseWriter, r *http.Request, req reportapi.Correction) error {
	if by := user(r); !by.Official {
		return withTurn(h.filing, by.ID, "too many requests of this user", func() error { return h.correct(w, r, req) })
	}
	return h.correct(w, r, req)
}

func (h Reports) correct(w http.ResponseWriter, r *http.Request, req reportapi.Correction) error {
	correction := report.Correction{
		Title: req.Title, Description: req.Description, Address: req.Address, Reason: req.Reason,
		By: user(r).AsOfficial(), Official: user(r).Official, IfMatch: ifMatch(r),
	}
	if req.CategoryID != 0 {
		category, err := h.Categories.Category(r.Context(), req.CategoryID)
		if err != nil {
			return err
		}
		correction.Category = &category
		correction.Unusable = category.Usable(append([]string{h.languageOf(r)}, h.Languages...)...)
	}
	if req.Latitude != nil && req.Longitude != nil {
		correction.Position = report.NewPosition(*req.Latitude, *req.Longitude)
	}
	if req.Asset != nil {
		correction.Asset = new(report.Asset)
		if *req.Asset != "" {
			asset, place, err := h.Store.Asset(r.Context(), *req.Asset)
			if err != nil {
				return err
			}
			correction.Asset, correction.Position = &asset, cmp.Or(correction.Position, place)
		}
	}
	var err error
	if correction.Area, err = h.Areas.At(r.Context(), correction.Position); err != nil {
		return err
	}
	if err := report.CheckPosition(correction.Position, h.Bounds); err != nil {
		return err
	}
	view, err := h.Store.Correct(r.Context(), pathID(r), correction)
	return sendReport(w, r, view, err)
}

// hideName handles PUT /reports/{id}/privacy.
func (h Reports) hideName(w http.ResponseWriter, r *http.Request, _ reportapi.HiddenName) error { // the document allows one level
	view, err := h.Store.HideName(r.Context(), pathID(r), user(r).ID)
	return sendReport(w, r, view, err)
}

// withdrawReport handles DELETE /reports/{id}.
func (h Reports) withdrawReport(w http.ResponseWriter, r *http.Request) error {
	view, err := h.Store.Withdraw(r.Context(), pathID(r), user(r).ID, ifMatch(r))
	return sendReport(w, r, view, err)
}

// replyToReport handles POST /reports/{id}/replies.
func (h Reports) replyToReport(w http.ResponseWriter, r *http.Request, req reportapi.NewReply) error {
	reply, err := report.NewReply(req.Text, user(r).AsOfficial(), time.Now())
	if err != nil {
		return err
	}
	// The response is stored with the reply. It has no words: those that are
	// redacted later must not be kept here.
	return addTo(w, r, req, reportapi.Replied{RepliedAt: reply.At}, "/history", func(idempotent *report.Idempotent) ([]byte, error) {
		return h.Store.Reply(r.Context(), pathID(r), reply, idempotent)
	})
}

// getHistory handles GET /reports/{id}/history.
func (h Reports) getHistory(r *http.Request) (reportapi.History, error) {
	changes, err := h.Store.History(r.Context(), pathID(r), user(r))
	return reportapi.History{History: service.Each(changes, func(c report.Change) reportapi.HistoryEntry {
		return reportapi.HistoryEntry{
			FromStatus: reportapi.Status(c.From), ToStatus: reportapi.Status(c.To), Note: c.Note,
			Version: c.Version, ChangedAt: c.At, Correction: correctionOf(c.Corrected), Kind: reportapi.HistoryEntryKind(c.Kind), DepartmentName: c.Department,
		}
	})}, err
}
