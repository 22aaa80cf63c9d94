package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A QuestionStore keeps what officials ask reporters.
type QuestionStore interface {
	Ask(ctx context.Context, id uuid.UUID, q report.Question) (report.Question, error)
	Withdraw(ctx context.Context, id, question uuid.UUID, by report.Official) error
	Answer(ctx context.Context, id uuid.UUID, reporter string, a report.Answer, idempotent *report.Idempotent) (earlier report.StoredResponse, err error)
	Dialogue(ctx context.Context, id uuid.UUID, reader report.User) (report.Dialogue, error)
}

type questionHandlers struct {
	questions QuestionStore
	answering *ratelimit.Limiter // by user
}

func (h questionHandlers) operations() operations {
	return operations{
		"askReporter":      {Handler: h.askReporter, Timeout: changeTimeout},
		"withdrawQuestion": {Handler: h.withdrawQuestion, Timeout: changeTimeout},
		"answerQuestion":   {Handler: limited(h.answering, h.answerQuestion), Timeout: changeTimeout},
		"getDialogue":      {Handler: h.getDialogue, Timeout: service.DefaultTimeout},
	}
}

// askReporter handles POST /reports/{id}/questions.
func (h questionHandlers) askReporter(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.NewQuestion](r)
	if err != nil {
		return err
	}
	question, err := report.NewQuestion(req.Text, caller(r).AsOfficial(), time.Now())
	if err != nil {
		return err
	}
	if question, err = h.questions.Ask(r.Context(), pathID(r), question); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	w.Header().Set("Location", pathOf(pathID(r))+"/dialogue")
	return service.Encode(w, http.StatusCreated, reportapi.Question{
		ID: question.ID, Text: question.Text, AskedAt: question.At, AskedBy: personOf(&question.By),
		EndsOn: question.EndsOn, State: reportapi.QuestionState(question.State),
	})
}

// withdrawQuestion handles DELETE /reports/{id}/questions/{question_id}.
func (h questionHandlers) withdrawQuestion(w http.ResponseWriter, r *http.Request) error {
	question := uuid.MustParse(r.PathValue("question_id"))
	if err := h.questions.Withdraw(r.Context(), pathID(r), question, caller(r).AsOfficial()); err != nil {
		return fmt.Errorf("withdraw question: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// answerQuestion handles POST /reports/{id}/answers.
func (h questionHandlers) answerQuestion(w http.ResponseWriter, r *http.Request) error {
	req, err := service.Decode[reportapi.NewAnswer](r)
	if err != nil {
		return err
	}
	answer, err := report.NewAnswer(req.Text, time.Now())
	if err != nil {
		return err
	}
	// The response is stored with the answer. It has no words: they are kept in one
	// place, from which an erasure removes them.
	body, err := json.Marshal(reportapi.Answered{ID: answer.ID, AnsweredAt: answer.At})
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	idempotent, err := idempotentOn(r, req, body)
	if err != nil {
		return err
	}
	earlier, err := h.questions.Answer(r.Context(), pathID(r), caller(r).ID, answer, idempotent)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if earlier != nil {
		body = earlier
	}
	w.Header().Set("Location", pathOf(pathID(r))+"/dialogue")
	service.WriteJSON(w, http.StatusCreated, body)
	return nil
}

// getDialogue handles GET /reports/{id}/dialogue.
func (h questionHandlers) getDialogue(w http.ResponseWriter, r *http.Request) error {
	reader := caller(r)
	dialogue, err := h.questions.Dialogue(r.Context(), pathID(r), reader)
	if err != nil {
		return err
	}
	out := reportapi.Dialogue{Items: []reportapi.DialogueItem{}}
	for _, e := range dialogue.Exchanges {
		question := reportapi.DialogueItem{
			ID: e.ID, Kind: reportapi.DialogueItemKindQuestion, Text: e.Text, CreatedAt: e.At, EndsOn: e.EndsOn, State: reportapi.QuestionState(e.State),
		}
		if reader.Official {
			question.By = personOf(&e.By)
		}
		out.Items = append(out.Items, question)
		if e.Answer != nil {
			out.Items = append(out.Items, reportapi.DialogueItem{ID: e.Answer.ID, Kind: reportapi.DialogueItemKindAnswer, Text: e.Answer.Text, CreatedAt: e.Answer.At})
		}
	}
	for _, v := range dialogue.Verdicts {
		said := reportapi.DialogueItem{ID: v.ID, Kind: reportapi.DialogueItemKindVerdict, Text: v.Text, CreatedAt: v.GivenAt, Fixed: &v.Fixed}
		if v.ReportID != pathID(r) {
			said.DuplicateID = &v.ReportID
		}
		out.Items = append(out.Items, said)
	}
	slices.SortStableFunc(out.Items, func(a, b reportapi.DialogueItem) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return service.Encode(w, http.StatusOK, out)
}

// openQuestionOf returns nil for none.
func openQuestionOf(q *report.OpenQuestion) *reportapi.OpenQuestion {
	if q == nil {
		return nil
	}
	return &reportapi.OpenQuestion{ID: q.ID, AskedAt: q.At.UTC(), EndsOn: q.EndsOn}
}
