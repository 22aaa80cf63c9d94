package api

import (
	"context"
	"encoding/json"
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

// A CommentStore keeps what residents say about reports.
type CommentStore interface {
	Add(ctx context.Context, c *report.WrittenComment, idempotent *report.Idempotent) (earlier report.StoredResponse, err error)
	List(ctx context.Context, reportID uuid.UUID, after *report.Cursor, limit int, reader report.User) (report.CommentPage, error)
	Hide(ctx context.Context, reportID, id uuid.UUID, reason string, by report.Official) error
	Show(ctx context.Context, reportID, id uuid.UUID, by report.Official) error
	See(ctx context.Context, reportID, id uuid.UUID) error
}

type commentHandlers struct {
	comments CommentStore       // nil in a city whose residents write none
	writing  *ratelimit.Limiter // by user
	guests   bool               // whether guests comment
}

func (h commentHandlers) operations() operations {
	if h.comments == nil {
		none := service.Operation{Handler: func(http.ResponseWriter, *http.Request) error { return report.ErrNoComments }, Timeout: service.DefaultTimeout}
		return operations{"listComments": none, "addComment": none, "hideComment": none, "showComment": none, "seeComments": none}
	}
	return operations{
		"listComments": {Handler: h.listComments, Timeout: service.DefaultTimeout},
		"addComment":   {Handler: limited(h.writing, forGuests(h.guests, report.ErrNoGuestComments, h.addComment)), Timeout: changeTimeout},
		"hideComment":  {Handler: h.hideComment, Timeout: changeTimeout},
		"showComment":  {Handler: h.showComment, Timeout: changeTimeout},
		"seeComments":  {Handler: h.seeComments, Timeout: changeTimeout},
	}
}

// addComment handles POST /reports/{id}/comments.
func (h commentHandlers) addComment(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.NewComment](r)
	if err != nil {
		return err
	}
	by := caller(r)
	if by.Guest && !req.Anonymous {
		return fault.NewInvalid("/anonymous", "must be true: a guest has no name")
	}
	comment, err := report.NewComment(report.CommentDraft{ReportID: pathID(r), Text: req.Text, Anonymous: req.Anonymous},
		report.Commenter{ID: by.ID, Name: by.Name, Guest: by.Guest}, time.Now())
	if err != nil {
		return err
	}
	// The answer is known before the comment is stored, and is stored with it.
	body, err := json.Marshal(commentOf(comment.View()))
	if err != nil {
		return fmt.Errorf("encode comment: %w", err)
	}
	idempotent, err := idempotentOn(r, req, body)
	if err != nil {
		return err
	}
	earlier, err := h.comments.Add(r.Context(), &comment, idempotent)
	if err != nil {
		return fmt.Errorf("add comment: %w", err)
	}
	if earlier != nil {
		body = earlier
	}
	w.Header().Set("Location", pathOf(comment.ReportID)+"/comments")
	service.WriteJSON(w, http.StatusCreated, body)
	return nil
}

// listComments handles GET /reports/{id}/comments.
func (h commentHandlers) listComments(w http.ResponseWriter, r *http.Request) error {
	id, query := pathID(r), r.URL.Query()
	var after *report.Cursor
	if query.Has("cursor") {
		var err error
		if after, err = report.ParseCursor(query.Get("cursor")); err == nil {
			err = after.OfComments(id)
		}
		if err != nil {
			return invalid("cursor", err)
		}
	}
	limit, err := intParam(r, "limit")
	if err != nil {
		return err
	}
	page, err := h.comments.List(r.Context(), id, after, limit, caller(r))
	if err != nil {
		return err
	}
	out := reportapi.CommentPage{Comments: make([]reportapi.Comment, len(page.Comments)), Count: page.Count}
	for i, c := range page.Comments {
		out.Comments[i] = commentOf(c)
	}
	if page.Next != nil {
		out.NextCursor = page.Next.String()
		service.NextLink(w, r, out.NextCursor)
	}
	return service.Encode(w, http.StatusOK, out)
}

// hideComment handles PUT /reports/{id}/comments/{comment_id}/hidden.
func (h commentHandlers) hideComment(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.CommentHiding](r)
	if err != nil {
		return err
	}
	if err := h.comments.Hide(r.Context(), pathID(r), pathComment(r), strings.TrimSpace(req.Reason), caller(r).AsOfficial()); err != nil {
		return fmt.Errorf("hide comment: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// showComment handles DELETE /reports/{id}/comments/{comment_id}/hidden.
func (h commentHandlers) showComment(w http.ResponseWriter, r *http.Request) error {
	if err := h.comments.Show(r.Context(), pathID(r), pathComment(r), caller(r).AsOfficial()); err != nil {
		return fmt.Errorf("show comment: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// seeComments handles PUT /reports/{id}/comments/{comment_id}/seen.
func (h commentHandlers) seeComments(w http.ResponseWriter, r *http.Request) error {
	if err := h.comments.See(r.Context(), pathID(r), pathComment(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func pathComment(r *http.Request) uuid.UUID { return uuid.MustParse(r.PathValue("comment_id")) }

func commentOf(v report.CommentView) reportapi.Comment {
	return reportapi.Comment{
		ID: v.ID, Text: v.Text, Anonymous: v.Anonymous, AuthorName: v.AuthorName, Mine: v.Mine,
		HiddenReason: v.HiddenReason, CreatedAt: v.CreatedAt,
	}
}
