package api_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

const (
	questionBody = `{"text":" canary-question-51d0? "}`
	answerBody   = `{"text":" canary-answer-9b7e! "}`
)

// dialogue returns what a reader gets.
func (s *testServer) dialogue(path, token string) reportapi.Dialogue {
	s.t.Helper()
	got, _ := ok[reportapi.Dialogue](s, call{method: "GET", path: path + "/dialogue", token: token}, http.StatusOK)
	return got
}

// An official asks, the reporter alone answers, once per request; the reporter does not
// see who asked. A question that is open stands in the reporter's lists and in the queue.
func TestDialogue(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	path := "/reports/" + s.file(ann, "anonymous").ID.String()
	ask := call{method: "POST", path: path + "/questions", token: olga, body: questionBody}
	reply := call{method: "POST", path: path + "/answers", token: ann, body: answerBody, headers: map[string]string{"Idempotency-Key": "1"}}
	s.wantProblem(refusal{call: reply, status: http.StatusConflict, kind: "no-question"})

	q, a := ok[reportapi.Question](s, ask, http.StatusCreated)
	if q.Text != "canary-question-51d0?" || q.AskedBy.Name != "olga" || q.State != reportapi.QuestionStateOpen || len(q.EndsOn) != 10 || a.Header.Get("Location") != path+"/dialogue" {
		t.Errorf("answered %s at %s", a.body, a.Header.Get("Location"))
	}
	s.wantProblem(refusal{call: ask, status: http.StatusConflict, kind: "question-open"})
	mine, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports/mine", token: ann}, http.StatusOK)
	if got := mine.Reports[0].Question; got == nil || got.ID != q.ID || got.EndsOn != q.EndsOn || !got.AskedAt.Equal(q.AskedAt) {
		t.Errorf("the reporter's list has %+v, want the question", got)
	}
	if queue := s.queue(olga, "waiting=true"); len(queue) != 1 || len(s.queue(olga, "not_answered=true")) != 0 {
		t.Errorf("waiting are %v, want the report", queue)
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	if work.Report.Question == nil || work.Report.Question.ID != q.ID || !work.Report.Waiting || work.Report.NotAnswered {
		t.Errorf("officials see %+v, want the question", work.Report)
	}

	first, _ := ok[reportapi.Answered](s, reply, http.StatusCreated)
	if again, _ := ok[reportapi.Answered](s, reply, http.StatusCreated); again.ID != first.ID {
		t.Error("a repetition is another answer")
	}
	reply.body = `{"text":"another"}`
	s.wantProblem(refusal{call: reply, status: http.StatusUnprocessableEntity, kind: "idempotency-key-reused"})
	for name, reader := range map[string]string{"ann": ann, "olga": olga} {
		got := s.dialogue(path, reader).Items
		if len(got) != 2 || got[0].Kind != "question" || got[0].State != reportapi.QuestionStateAnswered || got[0].EndsOn != q.EndsOn ||
			got[1].Kind != "answer" || got[1].Text != "canary-answer-9b7e!" || got[1].ID != first.ID || got[1].By != (reportapi.Person{}) {
			t.Fatalf("%s reads %+v", name, got)
		}
		if (got[0].By.ID == "olga") != (name == "olga") {
			t.Errorf("%s sees that %+v asked", name, got[0].By)
		}
	}
	if view, _ := ok[reportapi.Report](s, call{method: "GET", path: path, token: ann}, http.StatusOK); view.Question != nil || view.Version != 1 {
		t.Errorf("after the answer the reporter sees %+v", view)
	}
	second, _ := ok[reportapi.Question](s, ask, http.StatusCreated)
	withdraw := call{method: "DELETE", path: path + "/questions/" + second.ID.String(), token: olga}
	s.wantStatus(http.StatusNoContent, withdraw)
	s.wantStatus(http.StatusNoContent, withdraw)
	withdraw.path = path + "/questions/" + q.ID.String()
	s.wantProblem(refusal{call: withdraw, status: http.StatusConflict, kind: "no-question"})
	withdraw.path = path + "/questions/" + uuid.NewString()
	s.wantProblem(refusal{call: withdraw, status: http.StatusNotFound, kind: "not-found"})
	s.wantStatus(http.StatusOK, call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"resolved"}`})
	s.wantProblem(refusal{call: ask, status: http.StatusConflict, kind: "report-closed"})
}

// Each role may do with questions what it may, and nothing else. An official who is not
// the reporter does not answer, and a reporter does not ask.
func TestWhoAsksAndWhoAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	path := "/reports/" + s.file(ann, "anonymous").ID.String()
	const none, denied, missing = http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound
	for _, tt := range []struct {
		name, token                            string
		ask, withdraw, dialogue, answer, reads int
	}{
		{"nobody", "", none, none, none, none, 0},
		{"another resident", token(t, "bob", auth.Resident), denied, denied, missing, missing, 0},
		{"an operator", token(t, "otto", auth.Operator), denied, denied, missing, missing, 0},
		{"the reporter", ann, denied, denied, http.StatusOK, http.StatusCreated, 1},
		{"an official", token(t, "olga", auth.Official), http.StatusCreated, http.StatusNoContent, http.StatusOK, missing, 1},
	} {
		q, _ := ok[reportapi.Question](s, call{method: "POST", path: path + "/questions", token: token(t, "otis", auth.Official), body: questionBody}, http.StatusCreated)
		withdraw := call{method: "DELETE", path: path + "/questions/" + q.ID.String(), token: tt.token}
		for name, c := range map[string]struct {
			call
			want int
		}{
			"dialogue": {call{method: "GET", path: path + "/dialogue", token: tt.token}, tt.dialogue},
			"answer":   {call{method: "POST", path: path + "/answers", token: tt.token, body: answerBody}, tt.answer},
		} {
			if a := s.do(c.call); a.StatusCode != c.want {
				t.Errorf("%s, %s: %d, want %d: %s", tt.name, name, a.StatusCode, c.want, a.body)
			}
		}
		if tt.answer != http.StatusCreated {
			if a := s.do(withdraw); a.StatusCode != tt.withdraw {
				t.Errorf("%s withdraws: %d, want %d: %s", tt.name, a.StatusCode, tt.withdraw, a.body)
			}
			withdraw.token = token(t, "otis", auth.Official)
			s.wantStatus(http.StatusNoContent, withdraw)
		}
		if a := s.do(call{method: "POST", path: path + "/questions", token: tt.token, body: questionBody}); a.StatusCode != tt.ask {
			t.Errorf("%s asks: %d, want %d: %s", tt.name, a.StatusCode, tt.ask, a.body)
		}
	}
}

// The words of a question and of an answer are in two tables and in the dialogue, and
// nowhere else: whoever asks for whatever, and in no message, log or stored answer.
func TestDialogueIsPrivate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	path := "/reports/" + s.file(ann, "public").ID.String()
	ok[reportapi.Question](s, call{method: "POST", path: path + "/questions", token: olga, body: questionBody}, http.StatusCreated)
	ok[reportapi.Answered](s, call{method: "POST", path: path + "/answers", token: ann, body: answerBody, headers: map[string]string{"Idempotency-Key": "1"}}, http.StatusCreated)
	ok[reportapi.Question](s, call{method: "POST", path: path + "/questions", token: olga, body: questionBody}, http.StatusCreated)
	tracked := &tracker{s: s, secrets: []string{"canary-question-51d0", "canary-answer-9b7e"}}
	calls := append(everything(path),
		call{method: "GET", path: path + "/work"}, call{method: "GET", path: "/reports/queue"}, call{method: "GET", path: "/reports/queue?waiting=true"},
		call{method: "GET", path: "/reports/export"}, call{method: "GET", path: path + "/outlook"},
		call{method: "GET", path: "/map/points?bbox=-180,-90,180,90&zoom=1"}, call{method: "GET", path: path + "/photos"})
	for _, reader := range []string{"", token(t, "bob", auth.Resident), ann, olga, token(t, "otto", auth.Operator)} {
		for _, c := range calls {
			if c.method == http.MethodDelete || c.method == http.MethodPatch {
				continue // the question stays open
			}
			c.token = reader
			a := s.do(c)
			tracked.look(c.method+" "+c.path, a.body)
			if reader != ann && strings.HasPrefix(c.path, path) && !strings.Contains(c.path, "/work") && bytes.Contains(a.body, []byte(`"question"`)) {
				t.Errorf("%s %s tells others that a question is open: %s", c.method, c.path, a.body)
			}
		}
	}
	tracked.look("the log", []byte(s.logs.String()))
	for _, table := range []string{"questions", "answers"} {
		if rows := strings.Join(tracked.column(`select t::text from `+table+` t`), ""); !strings.Contains(rows, "canary-") {
			t.Errorf("%s does not have the words; is this test looking at all?", table)
		}
	}
	if _, err := s.pool.Exec(t.Context(), `delete from questions`); err != nil {
		t.Fatal(err)
	}
	for _, table := range tracked.column(`select table_name::text from information_schema.tables where table_schema = 'public'`) {
		tracked.look(table, []byte(strings.Join(tracked.column(`select t::text from `+table+` t`), "\n")))
	}
}
