package report

import (
	"hash/fnv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// NoComments is the kind of all requests about comments in a city without
// comments.
const NoComments fault.Kind = "no comments"

// The faults of comments.
var (
	ErrNoComment  = fault.New(fault.NotFound, "there is no such comment")
	ErrNoComments = fault.New(NoComments, "residents do not comment on reports in this city")
)

// A Comment is the public part of a resident's comment on a report. It has no
// author.
type Comment struct {
	ID        uuid.UUID
	ReportID  uuid.UUID
	Text      string
	Anonymous bool
	CreatedAt time.Time
	// HiddenReason says why officials have hidden it; it is empty for a comment
	// that everybody sees.
	HiddenReason string
}

// A CommentView is a comment as one reader may see it.
type CommentView struct {
	Comment
	AuthorName string // empty if it is anonymous
	Mine       bool   // whether the reader wrote it
}

// A WrittenComment is a comment together with its author. As a whole it stays
// between this package and the database, as a Filing does.
type WrittenComment struct {
	Comment
	Author User
}

// NewComment returns c, of which its author has given the report, the text and whether it is
// anonymous. The author's name of an anonymous comment is dropped here: nobody sees it, so it
// is not stored.
func NewComment(c Comment, by User, now time.Time) (WrittenComment, error) {
	c.Text = strings.TrimSpace(c.Text)
	if c.Text == "" {
		return WrittenComment{}, fault.NewInvalid("/text", "must not be blank")
	}
	if c.Anonymous {
		by.Name = ""
	}
	c.ID, c.CreatedAt = uuid.Must(uuid.NewV7()), stored(now)
	return WrittenComment{Comment: c, Author: by}, nil
}

// View returns c as its author sees it.
func (c *WrittenComment) View() CommentView {
	return CommentView{Comment: c.Comment, AuthorName: c.Author.Name, Mine: true}
}

// A CommentPage is a part of a report's comments, oldest first.
type CommentPage struct {
	Comments []CommentView
	Count    int64   // of the comments that everybody sees
	Next     *Cursor // nil on the last
}

// commentList returns a number for the list of a report's comments, as
// Filter.List does for a list of reports.
func commentList(reportID uuid.UUID) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write(append([]byte("comments of "), reportID[:]...))
	return sum.Sum32()
}

// Cursor returns the place of c among the comments of its report.
func (c *Comment) Cursor() *Cursor {
	return &Cursor{List: commentList(c.ReportID), Key: c.CreatedAt.UnixMicro(), ID: c.ID}
}

// OfComments returns an error, as ParseCursor does, unless c is a place among the
// comments of the report.
func (c Cursor) OfComments(reportID uuid.UUID) error {
	if c.List != commentList(reportID) {
		return errCursor
	}
	return nil
}
