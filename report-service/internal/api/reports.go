package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// perOfficial is how often an official may file for others: more often than people can
// type, since a limit like that of residents would be reached on a busy day.
var perOfficial = ratelimit.Limit{Turns: 600, Period: time.Hour}

// A ReportStore keeps what residents file.
type ReportStore interface {
	Create(ctx context.Context, f *report.Filing, idempotent *report.Idempotent) (earlier report.StoredResponse, err error)
	Get(ctx context.Context, id uuid.UUID, reader report.User) (report.View, error)
	History(ctx context.Context, id uuid.UUID, reader report.User) ([]report.Change, error)
	Outlook(ctx context.Context, id uuid.UUID, reporter string) (report.Outlook, error)
	List(ctx context.Context, f report.Filter, after *report.Cursor, limit int, reader string) (report.Page, error)
	Map(ctx context.Context, f report.Filter, grid report.Grid, maxPoints int) (report.Map, error)
	Fingerprint(ctx context.Context, filter report.Filter) (string, error)
	Hidden(ctx context.Context) (string, error)
	Move(ctx context.Context, id uuid.UUID, m report.Move) (report.View, error)
	HideName(ctx context.Context, id uuid.UUID, reporter string) (report.View, error)
	Withdraw(ctx context.Context, id uuid.UUID, reporter string, ifMatch report.Versions) (report.View, error)
	Correct(ctx context.Context, id uuid.UUID, c report.Correction) (report.View, error)
	Reply(ctx context.Context, id uuid.UUID, reply report.Reply, idempotent *report.Idempotent) (earlier report.StoredResponse, err error)
	GiveVerdict(ctx context.Context, id uuid.UUID, reporter string, v report.Verdict) (report.Verdict, error)
	Keep(ctx context.Context, id uuid.UUID, k report.Keep) error
	Vote(ctx context.Context, id uuid.UUID, b report.Ballot) (report.Tally, error)
}

type reportHandlers struct {
	reports        ReportStore
	categories     categories
	areas          AreaStore
	cityName       string
	city           *report.Box        // where reports may be; nil for everywhere
	filing, voting *ratelimit.Limiter // by user
	counter        *ratelimit.Limiter // by official, for others
	gates          gates
	maps           *sharedMaps
	guests         Guests
}

func (h reportHandlers) operations() operations {
	return operations{
		"listReports":      {Handler: h.listReports, Timeout: service.DefaultTimeout},
		"createReport":     {Handler: h.createReport, Timeout: changeTimeout},
		"listMyReports":    {Handler: h.listMyReports, Timeout: service.DefaultTimeout},
		"listMapPoints":    {Handler: h.listMapPoints, Timeout: service.DefaultTimeout},
		"openDataCSV":      {Handler: h.openDataCSV, Timeout: service.Unlimited},
		"openDataGeoJSON":  {Handler: h.openDataGeoJSON, Timeout: service.Unlimited},
		"openDataAtom":     {Handler: h.openDataAtom, Timeout: service.DefaultTimeout},
		"getReport":        {Handler: h.getReport, Timeout: service.DefaultTimeout},
		"getReportHistory": {Handler: h.getHistory, Timeout: service.DefaultTimeout},
		"getOutlook":       {Handler: h.getOutlook, Timeout: service.DefaultTimeout},
		"previewReport":    {Handler: h.previewReport, Timeout: service.DefaultTimeout},
		"correctReport":    {Handler: h.correctReport, Timeout: changeTimeout},
		"hideName":         {Handler: h.hideName, Timeout: changeTimeout},
		"withdrawReport":   {Handler: h.withdrawReport, Timeout: changeTimeout},
		"giveVerdict":      {Handler: h.giveVerdict, Timeout: changeTimeout},
		"changeStatus":     {Handler: h.changeStatus, Timeout: changeTimeout},
		"replyToReport":    {Handler: h.replyToReport, Timeout: changeTimeout},
		"vote":             {Handler: limited(h.voting, forGuests(h.guests.Votes, report.ErrNoGuestVotes, h.vote)), Timeout: changeTimeout},
		"withdrawVote":     {Handler: limited(h.voting, forGuests(h.guests.Votes, report.ErrNoGuestVotes, h.withdrawVote)), Timeout: changeTimeout},
	}
}

// createReport handles POST /reports. Paths are in logs: if officials who file for somebody
// had another one, it would tell which reports came to the counter.
func (h reportHandlers) createReport(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.NewReport](r)
	if err != nil {
		return err
	}
	by := caller(r)
	turns, reporter, intake := h.filing, report.Reporter{ID: by.ID, Name: by.Name, Guest: by.Guest}, (*report.Intake)(nil)
	if req.Source != "" {
		if intake, err = report.NewIntake(report.Source(req.Source), report.Privacy(req.PrivacyLevel), by); err != nil {
			return err
		}
		turns, reporter = h.counter, report.NewCaller()
	}
	return withTurn(turns, by.ID, "too many requests of this user", func(w http.ResponseWriter, r *http.Request) error {
		return h.file(w, r, req, reporter, intake)
	}, w, r)
}

// file files a report by somebody, with intake if an official does it for them.
func (h reportHandlers) file(w http.ResponseWriter, r *http.Request, req reportapi.NewReport, by report.Reporter, intake *report.Intake) error {
	if err := h.guests.mayFile(r, report.Privacy(req.PrivacyLevel)); err != nil {
		return err
	}
	category, err := h.categories.store.Category(r.Context(), req.CategoryID)
	if err != nil {
		return err
	}
	unusable := category.Usable(h.categories.languageOf(r), h.categories.languages[0])
	draft := report.Draft{
		Title: req.Title, Description: req.Description, Category: category,
		Address: req.Address, Privacy: report.Privacy(req.PrivacyLevel), Visibility: report.Visibility(req.Visibility),
	}
	if req.Latitude != nil && req.Longitude != nil {
		draft.Position = report.NewPosition(*req.Latitude, *req.Longitude)
	}
	if err := report.CheckPosition(draft.Position, h.city); err != nil {
		return err
	}
	areas, err := h.areas.List(r.Context())
	if err != nil {
		return err
	}
	draft.Area = areas.At(draft.Position)
	filing, err := report.New(draft, by, time.Now())
	if err != nil {
		return err
	}
	filing.Intake = intake
	// The answer is known before the report is stored, and is stored with it.
	body, err := json.Marshal(reportOf(filing.View()))
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
	earlier, err := h.reports.Create(r.Context(), &filing, idempotent)
	if err != nil {
		return quotaProblem(fmt.Errorf("create report: %w", err))
	}
	id, version := filing.ID, filing.Version
	if earlier != nil {
		var first reportapi.Report
		if err := json.Unmarshal(earlier, &first); err != nil {
			return fmt.Errorf("read stored response: %w", err)
		}
		body, id, version = earlier, first.ID, first.Version
	}
	if intake != nil { // what is stored does not tell that it is not the caller's own
		if body, err = notMine(body); err != nil {
			return err
		}
	}
	w.Header().Set("Location", pathOf(id))
	w.Header().Set("ETag", report.ETag(version))
	service.WriteJSON(w, http.StatusCreated, body)
	return nil
}

// notMine returns the answer with a report of the caller's own for somebody whose it is not.
func notMine(own []byte) ([]byte, error) {
	var answer reportapi.Report
	if err := json.Unmarshal(own, &answer); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	answer.Mine = false
	return json.Marshal(answer)
}

// idempotentOf returns nil without a key. Requests with the same content count
// as the same, however it is formatted.
func idempotentOf(r *http.Request, req any) (*report.Idempotent, error) {
	key, err := idempotencyKey(r.Header.Get("Idempotency-Key"))
	if key == "" {
		return nil, err
	}
	content, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return &report.Idempotent{UserID: caller(r).ID, Key: key, Request: sha256.Sum256(content)}, nil
}

// idempotentOn is idempotentOf for what is added to the report in the path, with the
// response to keep. The key applies to this report alone: no client's key contains a space.
func idempotentOn(r *http.Request, req any, response []byte) (*report.Idempotent, error) {
	idempotent, err := idempotentOf(r, req)
	if idempotent != nil {
		idempotent.Key = pathID(r).String() + " " + idempotent.Key
		idempotent.Response = response
	}
	return idempotent, err
}

// idempotencyKey returns the key in a header, or "" without one. A key in quotes, as
// in the IETF's draft of this header, is the same as without them.
func idempotencyKey(header string) (string, error) {
	quoted, ok := strings.CutPrefix(header, `"`)
	if !ok {
		return header, nil
	}
	key, ok := strings.CutSuffix(quoted, `"`)
	key = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(key) // RFC 9651, 3.3.3
	if !ok || key == "" {
		return "", fault.NewInvalid("Idempotency-Key", "must be a key, or a key in double quotes")
	}
	return key, nil
}

// getReport handles GET /reports/{id}.
func (h reportHandlers) getReport(w http.ResponseWriter, r *http.Request) error {
	view, err := h.reports.Get(r.Context(), pathID(r), caller(r))
	if err != nil {
		return err
	}
	w.Header().Set("ETag", report.ETag(view.Version))
	return service.Encode(w, http.StatusOK, reportOf(view))
}

// getOutlook handles GET /reports/{id}/outlook.
func (h reportHandlers) getOutlook(w http.ResponseWriter, r *http.Request) error {
	outlook, err := h.reports.Outlook(r.Context(), pathID(r), caller(r).ID)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.Outlook{DepartmentName: outlook.Department, DueAt: orZero(outlook.DueAt)})
}

// changeStatus handles PATCH /reports/{id}/status.
func (h reportHandlers) changeStatus(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.StatusChange](r)
	if err != nil {
		return err
	}
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	view, err := h.reports.Move(r.Context(), pathID(r), report.Move{
		To: report.Status(req.Status), Note: req.Note, By: caller(r).ID, ByName: caller(r).AsOfficial().Name, IfMatch: versions,
	})
	if err != nil {
		return fmt.Errorf("change status: %w", err)
	}
	w.Header().Set("ETag", report.ETag(view.Version))
	w.Header().Set("Content-Location", pathOf(view.ID))
	return service.Encode(w, http.StatusOK, reportOf(view))
}

// correctReport handles PATCH /reports/{id}.
func (h reportHandlers) correctReport(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.Correction](r)
	if err != nil {
		return err
	}
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	correction := report.Correction{Address: req.Address, Reason: req.Reason, By: caller(r).AsOfficial(), IfMatch: versions}
	if req.CategoryID != 0 {
		category, err := h.categories.store.Category(r.Context(), req.CategoryID)
		if err != nil {
			return err
		}
		correction.Category = &category
		correction.Unusable = category.Usable(h.categories.languageOf(r), h.categories.languages[0])
	}
	if req.Latitude != nil && req.Longitude != nil {
		areas, err := h.areas.List(r.Context())
		if err != nil {
			return err
		}
		correction.Position = report.NewPosition(*req.Latitude, *req.Longitude)
		correction.Area = areas.At(correction.Position)
	}
	if err := report.CheckPosition(correction.Position, h.city); err != nil {
		return err
	}
	view, err := h.reports.Correct(r.Context(), pathID(r), correction)
	if err != nil {
		return fmt.Errorf("correct report: %w", err)
	}
	w.Header().Set("ETag", report.ETag(view.Version))
	return service.Encode(w, http.StatusOK, reportOf(view))
}

// hideName handles PUT /reports/{id}/privacy.
func (h reportHandlers) hideName(w http.ResponseWriter, r *http.Request) error {
	if _, err := service.Decode[reportapi.HiddenName](r); err != nil { // the document allows one level
		return err
	}
	view, err := h.reports.HideName(r.Context(), pathID(r), caller(r).ID)
	if err != nil {
		return fmt.Errorf("hide name: %w", err)
	}
	w.Header().Set("ETag", report.ETag(view.Version))
	w.Header().Set("Content-Location", pathOf(view.ID))
	return service.Encode(w, http.StatusOK, reportOf(view))
}

// withdrawReport handles DELETE /reports/{id}.
func (h reportHandlers) withdrawReport(w http.ResponseWriter, r *http.Request) error {
	versions, err := ifMatch(r)
	if err != nil {
		return err
	}
	view, err := h.reports.Withdraw(r.Context(), pathID(r), caller(r).ID, versions)
	if err != nil {
		return fmt.Errorf("withdraw report: %w", err)
	}
	w.Header().Set("ETag", report.ETag(view.Version))
	return service.Encode(w, http.StatusOK, reportOf(view))
}

// replyToReport handles POST /reports/{id}/replies.
func (h reportHandlers) replyToReport(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.NewReply](r)
	if err != nil {
		return err
	}
	reply, err := report.NewReply(req.Text, caller(r).AsOfficial(), time.Now())
	if err != nil {
		return err
	}
	// The response is stored with the reply. It has no words: those that are
	// redacted later must not be kept here.
	body, err := json.Marshal(reportapi.Replied{RepliedAt: reply.At})
	if err != nil {
		return fmt.Errorf("encode reply: %w", err)
	}
	idempotent, err := idempotentOn(r, req, body)
	if err != nil {
		return err
	}
	earlier, err := h.reports.Reply(r.Context(), pathID(r), reply, idempotent)
	if err != nil {
		return fmt.Errorf("reply: %w", err)
	}
	if earlier != nil {
		body = earlier
	}
	w.Header().Set("Location", pathOf(pathID(r))+"/history")
	service.WriteJSON(w, http.StatusCreated, body)
	return nil
}

// getHistory handles GET /reports/{id}/history.
func (h reportHandlers) getHistory(w http.ResponseWriter, r *http.Request) error {
	changes, err := h.reports.History(r.Context(), pathID(r), caller(r))
	if err != nil {
		return err
	}
	history := reportapi.History{History: make([]reportapi.HistoryEntry, len(changes))}
	for i, c := range changes {
		history.History[i] = reportapi.HistoryEntry{
			FromStatus: reportapi.Status(c.From), ToStatus: reportapi.Status(c.To), Note: c.Note,
			Version: c.Version, ChangedAt: c.At, Correction: correctionOf(c.Corrected), Kind: reportapi.HistoryEntryKind(c.Kind),
		}
	}
	return service.Encode(w, http.StatusOK, history)
}

// ifMatch returns the versions at which the request may change a report.
func ifMatch(r *http.Request) (report.Versions, error) {
	header := r.Header.Values("If-Match")
	if len(header) == 0 {
		return report.Versions{}, nil
	}
	versions, err := report.ParseIfMatch(strings.Join(header, ","))
	if err != nil {
		return versions, invalid("If-Match", err)
	}
	return versions, nil
}

// pathID returns the id in the path, which the document has checked.
func pathID(r *http.Request) uuid.UUID { return uuid.MustParse(r.PathValue("id")) }

// caller returns who makes the request.
func caller(r *http.Request) report.User {
	principal, _ := auth.From(r.Context())
	return report.User{ID: principal.ID, Name: principal.Name, Official: principal.Role == auth.Official, Guest: principal.Guest}
}

func pathOf(id uuid.UUID) string { return "/reports/" + id.String() }
