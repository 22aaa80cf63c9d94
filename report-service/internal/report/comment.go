package report

import (
	"hash/fnv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// NoComments is the kind of everything about comments in a city whose residents
// write none.
const NoComments fault.Kind = "no comments"

// What a comment may fail with.
var (
	ErrNoComment  = fault.New(fault.NotFound, "there is no such comment")
	ErrNoComments = fault.New(NoComments, "residents do not comment on reports in this city")
)

// A Comment is what a resident says about a report, as everyone may know it. It
// has no author.
type Comment struct {
	ID        uuid.UUID
	ReportID  uuid.UUID
	Text      string
	Anonymous bool
	CreatedAt time.Time
	// HiddenReason says why officials have hidden it; it is empty for one that
	// everybody sees.
	HiddenReason string
}

// A CommentView is a comment as one reader may see it.
type CommentView struct {
	Comment
	AuthorName string // empty if it is anonymous
	Mine       bool   // whether the reader wrote it
}

// A Commenter is the resident who wrote a comment.
type Commenter struct {
	ID   string
	Name string
}

// A WrittenComment is a comment together with who wrote it. As a whole it stays
// between here and the database, as a Filing does.
type WrittenComment struct {
	Comment
	Author Commenter
}

// A CommentDraft is what a resident wants to say about a report.
type CommentDraft struct {
	ReportID  uuid.UUID
	Text      string
	Anonymous bool
}

// NewComment returns the comment of d. Of an anonymous one the author's name is
// dropped here: it is shown to nobody, and so kept nowhere.
func NewComment(d CommentDraft, by Commenter, now time.Time) (WrittenComment, error) {
	text := strings.TrimSpace(d.Text)
	if text == "" {
		return WrittenComment{}, fault.NewInvalid("/text", "want more than white space")
	}
	if d.Anonymous {
		by.Name = ""
	}
	return WrittenComment{
		Comment: Comment{
			ID: uuid.Must(uuid.NewV7()), ReportID: d.ReportID, Text: text, Anonymous: d.Anonymous, CreatedAt: stored(now),
		},
		Author: by,
	}, nil
}

// View returns c as its author sees it.
func (c *WrittenComment) View() CommentView {
	return CommentView{Comment: c.Comment, AuthorName: c.Author.Name, Mine: true}
}

// A CommentPage is a part of a report's comments, oldest first.
type CommentPage struct {
	Comments []CommentView
	Count    int64   // of all that everybody sees
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
