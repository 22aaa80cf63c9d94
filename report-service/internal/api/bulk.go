package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Moves are those of many reports at once.
type Moves struct {
	Workbench *postgres.Workbench
	Reports   *postgres.Reports
}

// Operations are those on many reports.
func (h Moves) Operations() openapi.Operations {
	return openapi.Operations{
		"moveReports":   {Handler: service.Decoded(h.moveReports), Timeout: changeTimeout},
		"listBulkMoves": {Handler: answered(h.listBulkMoves), Timeout: service.DefaultTimeout},
	}
}

// moveReports handles POST /reports/moves.
func (h Moves) moveReports(w http.ResponseWriter, r *http.Request, req reportapi.BulkMove) error {
	by := user(r).AsOfficial()
	bulk := report.BulkMove{By: by, To: report.Status(req.Status), Note: strings.TrimSpace(req.Note)}
	given := make(map[uuid.UUID]bool)
	for i, rep := range req.Reports {
		if given[rep.ID] {
			return fault.NewInvalid(fmt.Sprintf("/reports/%d/id", i), "must not name a report twice")
		}
		given[rep.ID] = true
		bulk.Reports = append(bulk.Reports, rep.ID)
	}
	idempotent, err := idempotentOf(r, req)
	if err != nil {
		return err
	}
	entry, earlier, err := h.Workbench.BeginBulkMove(r.Context(), bulk, idempotent)
	if err != nil {
		return err
	}
	if earlier != nil {
		service.WriteJSON(w, http.StatusOK, earlier)
		return nil
	}

	// Concurrently, so that the committer writes them together.
	out := reportapi.BulkMoved{Results: make([]reportapi.MoveResult, len(req.Reports))}
	moves, ctx := errgroup.WithContext(r.Context())
	for i, rep := range req.Reports {
		moves.Go(func() error {
			move := report.Move{To: bulk.To, Note: bulk.Note, By: by.ID, ByName: by.Name, Scope: by.Scope}
			if rep.Version > 0 {
				move.IfMatch = report.VersionOnly(rep.Version)
			}
			view, err := h.Reports.Move(ctx, rep.ID, move)
			out.Results[i] = reportapi.MoveResult{ID: rep.ID, Moved: err == nil, Version: view.Version}
			refusal, ok := errors.AsType[*fault.Error](err)
			if err != nil && (!ok || refusal.Kind == fault.Unavailable) {
				return fmt.Errorf("move report: %w", err) // repeating the request moves the rest
			}
			if ok {
				out.Results[i].Problem, out.Results[i].Detail = problemName(refusal.Kind), refusal.Msg
			}
			return nil
		})
	}
	if err := moves.Wait(); err != nil {
		return err
	}
	refused := []uuid.UUID{}
	for _, result := range out.Results {
		if !result.Moved {
			refused = append(refused, result.ID)
		}
	}
	body, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if idempotent != nil {
		idempotent.Response = body
	}
	if err := h.Workbench.EndBulkMove(r.Context(), entry, refused, idempotent); err != nil {
		return err
	}
	service.WriteJSON(w, http.StatusOK, body)
	return nil
}

// problemName returns the name of the problem that would answer a single
// request.
func problemName(kind fault.Kind) string {
	switch kind {
	case fault.Invalid:
		return service.InvalidInput.Name
	case fault.NotFound:
		return service.NotFound.Name
	}
	return problems[kind].Name
}

// listBulkMoves handles GET /reports/moves.
func (h Moves) listBulkMoves(r *http.Request) (reportapi.BulkMoves, error) {
	moves, err := h.Workbench.BulkMoves(r.Context(), intParam(r, "limit"), user(r))
	return reportapi.BulkMoves{Moves: service.Each(moves, func(m report.BulkMove) reportapi.BulkMoveEntry {
		return reportapi.BulkMoveEntry{
			At: m.At, By: personOf(&m.By), Status: reportapi.Status(m.To), Note: m.Note, Reports: m.Reports, Refused: orEmpty(m.Refused), Ended: m.Refused != nil,
		}
	})}, err
}
