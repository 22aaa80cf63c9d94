package api

import (
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

// Comments are what residents say about reports.
type Comments struct {
	Store   *postgres.Comments // nil in a city whose residents write none
	PerUser ratelimit.Limit
	Guests  Guests
}

// Operations are those on comments.
func (h Comments) Operations() openapi.Operations {
	if h.Store == nil {
		none := service.Operation{Handler: func(http.ResponseWriter, *http.Request) error { return report.ErrNoComments }, Timeout: service.DefaultTimeout}
		return openapi.Operations{"listComments": none, "addComment": none, "hideComment": none, "showComment": none, "seeComments": none}
	}
	add := limited(ratelimit.New(h.PerUser), h.Guests.may(h.Guests.Comments, report.ErrNoGuestComments, service.Decoded(h.addComment)))
	return openapi.Operations{
		"listComments": {Handler: h.listComments, Timeout: service.DefaultTimeout},
		"addComment":   {Handler: add, Timeout: changeTimeout},
		"hideComment":  {Handler: service.Decoded(h.hideComment), Timeout: changeTimeout},
		"showComment":  {Handler: done(h.showComment), Timeout: changeTimeout},
		"seeComments":  {Handler: done(h.seeComments), Timeout: changeTimeout},
	}
}

// addComment handles POST /reports/{id}/comments.
func (h Comments) addComment(w http.ResponseWriter, r *http.Request, req reportapi.NewComment) error {
	by := user(r)
	if by.Guest && !req.Anonymous {
		return fault.NewInvalid("/anonymous", "must be true: a guest has no name")
	}
	comment, err := report.NewComment(report.Comment{ReportID: pathID(r), Text: req.Text, Anonymous: req.Anonymous}, by, time.Now())
	if err != nil {
		return err
	}
	return addTo(w, r, req, commentOf(comment.View()), "/comments", func(idempotent *report.Idempotent) ([]byte, error) {
		return h.Store.Add(r.Context(), &comment, idempotent)
	})
}

// listComments handles GET /reports/{id}/comments.
func (h Comments) listComments(w http.ResponseWriter, r *http.Request) error {
	id := pathID(r)
	after, err := readCursor(r, func(c *report.Cursor) error { return c.OfComments(id) })
	if err != nil {
		return err
	}
	page, err := h.Store.List(r.Context(), id, after, intParam(r, "limit"), user(r))
	if err != nil {
		return err
	}
	out := reportapi.CommentPage{Comments: service.Each(page.Comments, commentOf), Count: page.Count}
	if page.Next != nil {
		out.NextCursor = page.Next.String()
		service.NextLink(w, r, out.NextCursor)
	}
	return service.Encode(w, http.StatusOK, out)
}

// hideComment handles PUT /reports/{id}/comments/{comment_id}/hidden.
func (h Comments) hideComment(w http.ResponseWriter, r *http.Request, req reportapi.CommentHiding) error {
	if err := h.Store.Hide(r.Context(), pathID(r), openapi.PathID(r, "comment_id"), strings.TrimSpace(req.Reason), user(r).AsOfficial()); err != nil {
		return err
	}
	return service.NoContent(w)
}

// showComment handles DELETE /reports/{id}/comments/{comment_id}/hidden.
func (h Comments) showComment(r *http.Request) error {
	return h.Store.Show(r.Context(), pathID(r), openapi.PathID(r, "comment_id"), user(r).AsOfficial())
}

// seeComments handles PUT /reports/{id}/comments/{comment_id}/seen.
func (h Comments) seeComments(r *http.Request) error {
	return h.Store.See(r.Context(), pathID(r), openapi.PathID(r, "comment_id"), user(r))
}

func commentOf(v report.CommentView) reportapi.Comment {
	return reportapi.Comment{
		ID: v.ID, Text: v.Text, Anonymous: v.Anonymous, AuthorName: v.AuthorName, Mine: v.Mine,
		HiddenReason: v.HiddenReason, CreatedAt: v.CreatedAt,
	}
}
