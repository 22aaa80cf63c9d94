package postgres_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// written returns a comment that is not stored yet.
func written(on uuid.UUID, by report.Reporter, anonymous bool, text string) *report.WrittenComment {
	c, err := report.NewComment(report.Comment{ReportID: on, Text: text, Anonymous: anonymous}, report.User{ID: by.ID, Name: by.Name, Guest: by.Guest}, time.Now())
	if err != nil {
		panic(err)
	}
	return &c
}

// say stores a comment and returns it.
func (f *fixture) say(on uuid.UUID, by report.Reporter, anonymous bool, text string) report.WrittenComment {
	f.t.Helper()
	c := written(on, by, anonymous, text)
	if _, err := f.comments.Add(f.t.Context(), c, nil); err != nil {
		f.t.Fatalf("Comment: %v", err)
	}
	return *c
}

// said returns all comments on a report as reader sees them, each as who wrote it
// and what.
func (f *fixture) said(on uuid.UUID, reader report.User) (texts []string, count int64) {
	f.t.Helper()
	page, err := f.comments.List(f.t.Context(), on, nil, 100, reader)
	if err != nil {
		f.t.Fatalf("Comments: %v", err)
	}
	for _, c := range page.Comments {
		text := c.AuthorName + ": " + c.Text
		if c.Mine {
			text += " (mine)"
		}
		if c.HiddenReason != "" {
			text += " (hidden: " + c.HiddenReason + ")"
		}
		texts = append(texts, text)
	}
	return texts, page.Count
}

// The announcement of a comment does not depend on its author, and is for the
// reporter: even for the reporter's own, anonymous comment, because a message
// for nobody would reveal its author.
func TestCommentIsAnnouncedWithoutItsAuthor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	f.say(filed.ID, bob, false, "It is dark again")
	f.say(filed.ID, bob, true, "It is dark again")
	f.say(filed.ID, ann, true, "It is dark again")
	if texts, count := f.said(filed.ID, report.User{ID: bob.ID}); count != 3 ||
		!slices.Equal(texts, []string{"Bob: It is dark again (mine)", ": It is dark again (mine)", ": It is dark again"}) {
		t.Errorf("Bob sees %d comments: %q", count, texts)
	}
	rows := f.rowsOf(event.CommentedKey)
	if len(rows) != 3 {
		t.Fatalf("%d messages, want 3", len(rows))
	}
	var first map[string]any
	for i, row := range rows {
		var body map[string]any
		if err := json.Unmarshal(row.Payload, &body); err != nil {
			t.Fatal(err)
		}
		delete(body, "timestamp")
		if i == 0 {
			first = body
		}
		if fmt.Sprint(body) != fmt.Sprint(first) || row.Version != filed.Version {
			t.Errorf("message %d is %s, the first %v", i, row.Payload, first)
		}
		if text := string(row.Payload); strings.Contains(text, "-id") || strings.Contains(text, "dark again") || strings.Contains(text, "Bob") {
			t.Errorf("message %d tells who wrote what: %s", i, row.Payload)
		}
		if to, err := f.keys.Open(filed.ID, row.Headers[event.RecipientHeader]); err != nil || to != ann.ID {
			t.Errorf("message %d is for %q (error %v), want whoever filed the report", i, to, err)
		}
	}
	var names int
	if err := f.pool.QueryRow(t.Context(), `select count(*) from commenters where commenter_name <> ''`).Scan(&names); err != nil || names != 1 {
		t.Errorf("%d names are kept (error %v), want that of the one who gave it", names, err)
	}
}

// However often a request is sent, also at the same time, there is one comment.
func TestCommentOncePerKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Anonymous))
	send := func(text string) (report.StoredResponse, error) {
		return f.comments.Add(t.Context(), written(filed.ID, bob, false, text), &report.Idempotent{
			UserID: bob.ID, Key: "1", Request: sha256.Sum256([]byte(text)), Response: report.StoredResponse(`{"id":"` + uuid.NewString() + `"}`),
		})
	}
	var sending sync.WaitGroup
	for range 8 {
		sending.Go(func() {
			if _, err := send("not fixed"); err != nil && fault.KindOf(err) != report.StillRunning {
				t.Errorf("Comment: %v", err)
			}
		})
	}
	sending.Wait()
	if earlier, err := send("not fixed"); err != nil || earlier == nil {
		t.Errorf("a repetition is answered %q (error %v), want the first answer", earlier, err)
	}
	_, err := send("fixed")
	wantKind(t, err, report.KeyReused)
	if texts, _ := f.said(filed.ID, report.User{}); len(texts) != 1 || len(f.rowsOf(event.CommentedKey)) != 1 {
		t.Errorf("there are %q and %d messages, want one of each", texts, len(f.rowsOf(event.CommentedKey)))
	}
}

// Officials and its author see a hidden comment, until it is shown again; open
// pages are updated both times, and no one is notified.
func TestHiddenComment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed, other := f.file(ann, draft(report.Public)), f.file(ann, draft(report.Public))
	f.say(filed.ID, bob, true, "first")
	bad := f.say(filed.ID, bob, true, "names somebody")
	readers := map[string]report.User{"nobody": {}, "ann": {ID: ann.ID}, "bob": {ID: bob.ID}, "olga": {ID: hider.ID, Official: true}}

	wantKind(t, f.comments.Hide(t.Context(), other.ID, bad.ID, "x", hider), fault.NotFound)
	wantKind(t, f.comments.Hide(t.Context(), filed.ID, uuid.New(), "x", hider), fault.NotFound)
	wantKind(t, f.comments.Hide(t.Context(), uuid.New(), bad.ID, "x", hider), fault.NotFound)
	for range 2 { // the second changes nothing
		if err := f.comments.Hide(t.Context(), filed.ID, bad.ID, "A name", hider); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]string{
		"nobody": {": first"}, "ann": {": first"},
		"bob":  {": first (mine)", ": names somebody (mine) (hidden: A name)"},
		"olga": {": first", ": names somebody (hidden: A name)"},
	} {
		if texts, count := f.said(filed.ID, readers[name]); count != 1 || !slices.Equal(texts, want) {
			t.Errorf("%s sees %d: %q, want %q", name, count, texts, want)
		}
	}
	for range 2 {
		if err := f.comments.Show(t.Context(), filed.ID, bad.ID, hider); err != nil {
			t.Fatal(err)
		}
	}
	if texts, count := f.said(filed.ID, report.User{}); count != 2 || !slices.Equal(texts, []string{": first", ": names somebody"}) {
		t.Errorf("shown again there are %d: %q", count, texts)
	}
	rows := f.rowsOf(event.CommentedKey)
	if len(rows) != 4 { // two written, hidden, shown
		t.Fatalf("%d messages, want 4", len(rows))
	}
	for _, row := range rows[2:] {
		if to, err := f.keys.Open(filed.ID, row.Headers[event.RecipientHeader]); err != nil || to != "" {
			t.Errorf("what officials did is for %q (error %v), want nobody", to, err)
		}
	}
	work, err := f.workbench.Details(t.Context(), filed.ID, report.User{Official: true})
	if err != nil || len(work.Acts) != 2 || work.Acts[0].Kind != report.HidComment || work.Acts[0].Text != "A name" || work.Acts[1].Kind != report.ShowedComment {
		t.Errorf("the acts are %+v (error %v)", work.Acts, err)
	}
}

// A hidden report has its comments with it, and gets no more.
func TestCommentsOfAHiddenReport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	comment := f.say(filed.ID, bob, false, "Zebra")
	f.mustHide(filed.ID)
	before := len(f.outbox())
	for _, reader := range []string{"", bob.ID} {
		_, err := f.comments.List(t.Context(), filed.ID, nil, 10, report.User{ID: reader})
		wantKind(t, err, fault.NotFound)
	}
	for _, reader := range []report.User{{ID: ann.ID}, {ID: hider.ID, Official: true}} {
		if texts, _ := f.said(filed.ID, reader); len(texts) != 1 {
			t.Errorf("%s sees %q, want the comment", reader.ID, texts)
		}
	}
	for _, by := range []report.Reporter{ann, bob} {
		_, err := f.comments.Add(t.Context(), written(filed.ID, by, true, "more"), nil)
		wantKind(t, err, fault.NotFound)
	}
	if err := f.comments.Hide(t.Context(), filed.ID, comment.ID, "A name", hider); err != nil {
		t.Fatal(err)
	}
	if rows := f.outbox()[before:]; len(rows) != 0 {
		t.Errorf("announced while it is hidden: %+v", rows)
	}
}

func TestPagesOfComments(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed, other := f.file(ann, draft(report.Public)), f.file(ann, draft(report.Public))
	var want, got []string
	for i := range 5 {
		want = append(want, fmt.Sprint("comment ", i))
		f.say(filed.ID, bob, true, want[i])
	}
	f.say(other.ID, bob, true, "elsewhere")
	var after *report.Cursor
	for {
		page, err := f.comments.List(t.Context(), filed.ID, after, 2, report.User{})
		if err != nil || page.Count != 5 || len(page.Comments) > 2 {
			t.Fatalf("page %+v, error %v", page, err)
		}
		for _, c := range page.Comments {
			got = append(got, c.Text)
		}
		if after = page.Next; after == nil {
			break
		}
		if err := after.OfComments(filed.ID); err != nil {
			t.Errorf("the cursor is not of its own list: %v", err)
		}
		if after.OfComments(other.ID) == nil {
			t.Error("the cursor is one of another report's comments, too")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The comments of an erased person are kept without an author.
func TestErasedComments(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	named := written(filed.ID, kanari, false, "by name")
	_, err := f.comments.Add(t.Context(), named, &report.Idempotent{UserID: kanari.ID, Key: "1",
		Response: report.StoredResponse(fmt.Sprintf(`{"id":%q,"author_name":%q}`, named.ID, kanari.Name))})
	if err != nil {
		t.Fatal(err)
	}
	f.say(filed.ID, kanari, true, "without")
	f.say(filed.ID, bob, false, "another's")
	state := f.erase(f.newEraser(), kanari.ID)
	if state.Removed["comments"] != 2 {
		t.Errorf("%d comments lost their author, want 2", state.Removed["comments"])
	}
	if found := f.traces(); len(found) > 0 {
		t.Errorf("traces are left in %v", found)
	}
	for _, reader := range []string{"", kanari.ID} {
		if texts, _ := f.said(filed.ID, report.User{ID: reader}); !slices.Equal(texts, []string{": by name", ": without", "Bob: another's"}) {
			t.Errorf("%q sees %q", reader, texts)
		}
	}
}

// A comment is new to officials until one of them has seen it, and no longer than
// everybody sees it.
func TestNewComments(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second := f.file(ann, draft(report.Public)), f.file(ann, draft(report.Public))
	check := func(when string, onFirst, commented int64) {
		t.Helper()
		details, err := f.workbench.Details(t.Context(), first.ID, report.User{Official: true})
		if err != nil || details.Comments != onFirst {
			t.Errorf("%s: %d new comments on the first report (error %v), want %d", when, details.Comments, err, onFirst)
		}
		waiting, err := f.workbench.Waiting(t.Context(), report.User{Official: true})
		if err != nil || waiting.Commented != commented {
			t.Errorf("%s: %d reports have new comments (error %v), want %d", when, waiting.Commented, err, commented)
		}
		queue, err := f.workbench.Queue(t.Context(), report.Filter{NewComments: true}, nil, 10)
		if err != nil || int64(len(queue.Tasks)) != commented {
			t.Errorf("%s: the filter shows %d reports (error %v), want %d", when, len(queue.Tasks), err, commented)
		}
	}
	check("at first", 0, 0)
	f.say(first.ID, bob, true, "It is dark again")
	seen := f.say(first.ID, ann, false, "So it is")
	f.say(first.ID, bob, true, "Still")
	other := f.say(second.ID, bob, true, "Here, too")
	check("said", 3, 2)
	if err := f.comments.See(t.Context(), first.ID, seen.ID, report.User{Official: true}); err != nil {
		t.Fatal(err)
	}
	check("two are seen", 1, 2)
	if err := f.comments.Hide(t.Context(), second.ID, other.ID, "It names somebody", report.Official{ID: "olga", Name: "Olga"}); err != nil {
		t.Fatal(err)
	}
	check("one is hidden", 1, 1)
	if err := f.comments.See(t.Context(), second.ID, seen.ID, report.User{Official: true}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a comment on another report is seen: %v", err)
	}
	f.mustHide(first.ID)
	check("the report is hidden", 1, 0)
}
