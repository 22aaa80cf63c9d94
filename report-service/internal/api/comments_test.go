package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
)

// say is a request to comment on the report at path.
func say(path, token, body string) call {
	return call{method: "POST", path: path + "/comments", token: token, body: body}
}

// comments returns what a reader sees.
func (s *testServer) comments(path, token string) reportapi.CommentPage {
	s.t.Helper()
	page, _ := ok[reportapi.CommentPage](s, call{method: "GET", path: path + "/comments", token: token}, http.StatusOK)
	return page
}

const (
	named     = `{"text":" It is dark again. ","anonymous":false}`
	anonymous = `{"text":"It is dark again.","anonymous":true}`
)

// A resident comments by name or without one, once per request, at any status;
// only authors see which comments are theirs.
func TestComments(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, bob, olga := token(t, "ann", auth.Resident), token(t, "bob", auth.Resident), token(t, "olga", auth.Official)
	path := "/reports/" + s.file(ann, "anonymous").ID.String()
	for _, status := range []string{"in_progress", "resolved"} {
		s.wantStatus(http.StatusOK, call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"` + status + `"}`})
	}
	keyed := say(path, bob, named)
	keyed.headers = map[string]string{"Idempotency-Key": "1"}
	first, a := ok[reportapi.Comment](s, keyed, http.StatusCreated)
	if first.Text != "It is dark again." || first.AuthorName != "bob" || !first.Mine || a.Header.Get("Location") != path+"/comments" {
		t.Errorf("answered %s at %s", a.body, a.Header.Get("Location"))
	}
	again, _ := ok[reportapi.Comment](s, keyed, http.StatusCreated)
	if again.ID != first.ID {
		t.Error("a repetition has another comment")
	}
	keyed.path = "/reports/" + s.file(ann, "public").ID.String() + "/comments" // whose key is its own
	elsewhere, _ := ok[reportapi.Comment](s, keyed, http.StatusCreated)
	if elsewhere.ID == first.ID {
		t.Error("with the same key, a comment on another report is the first one")
	}
	hidden, _ := ok[reportapi.Comment](s, say(path, ann, anonymous), http.StatusCreated) // who filed it
	if hidden.AuthorName != "" || !hidden.Anonymous {
		t.Errorf("an anonymous comment is %+v", hidden)
	}
	for name, reader := range map[string]string{"": "", "ann": ann, "bob": bob, "olga": olga} {
		page := s.comments(path, reader)
		if page.Count != 2 || len(page.Comments) != 2 || page.Comments[0].AuthorName != "bob" || page.Comments[1].AuthorName != "" {
			t.Errorf("%q sees %+v", name, page)
		} else if page.Comments[0].Mine != (name == "bob") || page.Comments[1].Mine != (name == "ann") {
			t.Errorf("%q gets the wrong comments as their own: %+v", name, page)
		}
	}
	part, a := ok[reportapi.CommentPage](s, call{method: "GET", path: path + "/comments?limit=1"}, http.StatusOK)
	if len(part.Comments) != 1 || part.NextCursor == "" || !strings.Contains(a.Header.Get("Link"), `rel="next"`) {
		t.Errorf("the first page is %+v", part)
	}
	rest, _ := ok[reportapi.CommentPage](s, call{method: "GET", path: path + "/comments?limit=1&cursor=" + part.NextCursor}, http.StatusOK)
	if len(rest.Comments) != 1 || rest.Comments[0].ID != hidden.ID || rest.NextCursor != "" {
		t.Errorf("the second page is %+v", rest)
	}
	elsewhereList := call{method: "GET", path: keyed.path + "?cursor=" + part.NextCursor}
	s.wantProblem(refusal{call: elsewhereList, status: http.StatusBadRequest, kind: "invalid-input", pointers: []string{"cursor"}})
}

func TestBadComments(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	path := "/reports/" + s.file(ann, "public").ID.String()
	hide := path + "/comments/" + uuid.NewString() + "/hidden"
	bad := func(name, body string, pointers ...string) refusal {
		return refusal{name, say(path, ann, body), http.StatusBadRequest, "invalid-input", pointers}
	}
	for _, r := range []refusal{
		bad("no choice", `{"text":"x"}`, "/anonymous"),
		bad("no text", `{"anonymous":true}`, "/text"),
		bad("blank", `{"text":" \n ","anonymous":true}`, "/text"),
		bad("too long", `{"text":`+text(1001)+`,"anonymous":true}`, "/text"),
		bad("a character that cannot be kept", `{"text":"a\u0000b","anonymous":true}`, "/text"),
		bad("unknown field", `{"text":"x","anonymous":true,"author_name":"Bob"}`, "/author_name"),
		{"nobody", say(path, "", anonymous), http.StatusUnauthorized, "unauthenticated", nil},
		{"an official", say(path, olga, anonymous), http.StatusForbidden, "forbidden", nil},
		{"an operator", say(path, token(t, "otto", auth.Operator), anonymous), http.StatusForbidden, "forbidden", nil},
		{"no such report", say("/reports/"+uuid.NewString(), ann, anonymous), http.StatusNotFound, "not-found", nil},
		{"list of no report", call{method: "GET", path: "/reports/" + uuid.NewString() + "/comments"}, http.StatusNotFound, "not-found", nil},
		{"a resident hides", call{method: "PUT", path: hide, token: ann, body: `{"reason":"x"}`}, http.StatusForbidden, "forbidden", nil},
		{"without a reason", call{method: "PUT", path: hide, token: olga, body: `{"reason":" "}`}, http.StatusBadRequest, "invalid-input", []string{"/reason"}},
		{"no such comment", call{method: "PUT", path: hide, token: olga, body: `{"reason":"x"}`}, http.StatusNotFound, "not-found", nil},
		{"no such comment to show", call{method: "DELETE", path: hide, token: olga}, http.StatusNotFound, "not-found", nil},
	} {
		t.Run(r.name, func(t *testing.T) { (&testServer{t: t, url: s.url}).wantProblem(r) })
	}
	if a := s.do(say(path, ann, `{"text":`+text(1000)+`,"anonymous":true}`)); a.StatusCode != http.StatusCreated {
		t.Errorf("1,000 characters: status %d: %s", a.StatusCode, a.body)
	}
}

// A comment that an official hides is gone with the answer, except for
// officials and its author.
func TestHiddenComments(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, bob, olga := token(t, "ann", auth.Resident), token(t, "bob", auth.Resident), token(t, "olga", auth.Official)
	path := "/reports/" + s.file(ann, "public").ID.String()
	comment, _ := ok[reportapi.Comment](s, say(path, bob, anonymous), http.StatusCreated)
	hidden := path + "/comments/" + comment.ID.String() + "/hidden"
	s.wantStatus(http.StatusNoContent, call{method: "PUT", path: hidden, token: olga, body: `{"reason":" It names somebody "}`})
	for name, reader := range map[string]string{"": "", "ann": ann} {
		if page := s.comments(path, reader); page.Count != 0 || len(page.Comments) != 0 {
			t.Errorf("%q sees %+v", name, page)
		}
	}
	for name, reader := range map[string]string{"bob": bob, "olga": olga} {
		if page := s.comments(path, reader); page.Count != 0 || len(page.Comments) != 1 || page.Comments[0].HiddenReason != "It names somebody" {
			t.Errorf("%s sees %+v", name, page)
		}
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	if len(work.Acts) != 1 || work.Acts[0].Action != "hide_comment" || work.Acts[0].Text != "It names somebody" {
		t.Errorf("the acts are %+v", work.Acts)
	}
	s.wantStatus(http.StatusNoContent, call{method: "DELETE", path: hidden, token: olga})
	if page := s.comments(path, ""); page.Count != 1 || len(page.Comments) != 1 || page.Comments[0].HiddenReason != "" {
		t.Errorf("shown again: %+v", page)
	}
}

func TestLimitOfComments(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Comments.PerUser = ratelimit.Limit{Turns: 2, Period: time.Hour} })
	ann, bob := token(t, "ann", auth.Resident), token(t, "bob", auth.Resident)
	path := "/reports/" + s.file(ann, "public").ID.String()
	for range 2 {
		s.wantStatus(http.StatusBadRequest, say(path, bob, `{"text":"","anonymous":true}`))
		s.wantStatus(http.StatusCreated, say(path, bob, anonymous))
	}
	s.wantLimited(say(path, bob, anonymous), 30*time.Minute)
	s.wantStatus(http.StatusCreated, say(path, ann, anonymous))
}

// In a city without comments everything about them is answered so.
func TestCommentsSwitchedOff(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Comments.Store = nil })
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	path := "/reports/" + s.file(ann, "public").ID.String()
	hidden := path + "/comments/" + uuid.NewString() + "/hidden"
	for _, c := range []call{
		{method: "GET", path: path + "/comments"},
		say(path, ann, anonymous),
		{method: "PUT", path: hidden, token: olga, body: `{"reason":"x"}`},
		{method: "DELETE", path: hidden, token: olga},
	} {
		s.wantProblem(refusal{call: c, status: http.StatusNotFound, kind: "no-comments"})
	}
}
