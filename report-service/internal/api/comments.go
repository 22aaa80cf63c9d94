package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/ratelimit"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A CommentStore keeps what residents say about reports.
type CommentStore interface {
	Add(ctx context.Context, c *report.WrittenComment, idempotent *report.Idempotent) (earlier report.StoredResponse, err error)
	List(ctx context.Context, reportID uuid.UUID, after *report.Cursor, limit int, reader report.Reader) (report.CommentPage, error)
	Hide(ctx context.Context, reportID, id uuid.UUID, reason string, by report.Official) error
	Show(ctx context.Context, reportID, id uuid.UUID, by report.Official) error
}

// withComments returns next for cities whose residents comment on reports.
func (s *server) withComments(next service.HandlerFunc) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if s.Comments == nil {
			return report.ErrNoComments
		}
		return next(w, r)
	}
}

// commentHandlers has a handler for each operation on comments.
func (s *server) commentHandlers() openapi.Handlers {
	limit := ratelimit.New(s.CommentsPerUser)
	return openapi.Handlers{
		"listComments": s.withComments(s.listComments),
		"addComment":   s.withComments(limited(limit, s.addComment)),
		"hideComment":  s.withComments(s.hideComment),
		"showComment":  s.withComments(s.showComment),
	}
}

// addComment handles POST /reports/{id}/comments.
func (s *server) addComment(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[NewComment](r)
	if err != nil {
		return err
	}
	principal, _ := auth.From(r.Context())
	comment, err := report.NewComment(report.CommentDraft{ReportID: pathID(r), Text: req.Text, Anonymous: req.Anonymous},
		report.Commenter{ID: principal.ID, Name: principal.Name}, time.Now())
	if err != nil {
		return err
	}
	// What is answered is known before the comment is stored, and stored with it.
	body, err := json.Marshal(commentOf(comment.View()))
	if err != nil {
		return fmt.Errorf("encode comment: %w", err)
	}
	idempotent, err := idempotentOf(r, req)
	if err != nil {
		return err
	}
	if idempotent != nil {
		// The key is this report's alone: no client's key has a blank.
		idempotent.Key = pathID(r).String() + " " + idempotent.Key
		idempotent.Response = body
	}
	earlier, err := s.Comments.Add(r.Context(), &comment, idempotent)
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
func (s *server) listComments(w http.ResponseWriter, r *http.Request) error {
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
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		return invalid("limit", err)
	}
	page, err := s.Comments.List(r.Context(), id, after, limit, reader(r))
	if err != nil {
		return err
	}
	out := CommentPage{Comments: make([]Comment, len(page.Comments)), Count: page.Count}
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
func (s *server) hideComment(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[CommentHiding](r)
	if err != nil {
		return err
	}
	if err := s.Comments.Hide(r.Context(), pathID(r), pathComment(r), strings.TrimSpace(req.Reason), official(r)); err != nil {
		return fmt.Errorf("hide comment: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// showComment handles DELETE /reports/{id}/comments/{comment_id}/hidden.
func (s *server) showComment(w http.ResponseWriter, r *http.Request) error {
	if err := s.Comments.Show(r.Context(), pathID(r), pathComment(r), official(r)); err != nil {
		return fmt.Errorf("show comment: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func pathComment(r *http.Request) uuid.UUID { return uuid.MustParse(r.PathValue("comment_id")) }

func commentOf(v report.CommentView) Comment {
	return Comment{
		ID: v.ID, Text: v.Text, Anonymous: v.Anonymous, AuthorName: v.AuthorName, Mine: v.Mine,
		HiddenReason: v.HiddenReason, CreatedAt: v.CreatedAt,
	}
}
