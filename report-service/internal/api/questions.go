package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Questions are what officials ask reporters.
type Questions struct {
	Store   *postgres.Questions
	PerUser ratelimit.Limit // answers
}

// Operations are those on questions.
func (h Questions) Operations() openapi.Operations {
	return openapi.Operations{
		"askReporter":      {Handler: service.Decoded(h.askReporter), Timeout: changeTimeout},
		"withdrawQuestion": {Handler: done(h.withdrawQuestion), Timeout: changeTimeout},
		"answerQuestion":   {Handler: limited(ratelimit.New(h.PerUser), service.Decoded(h.answerQuestion)), Timeout: changeTimeout},
		"getDialogue":      {Handler: answered(h.getDialogue), Timeout: service.DefaultTimeout},
	}
}

// askReporter handles POST /reports/{id}/questions.
func (h Questions) askReporter(w http.ResponseWriter, r *http.Request, req reportapi.NewQuestion) error {
	question, err := report.NewQuestion(req.Text, user(r).AsOfficial(), time.Now())
	if err != nil {
		return err
	}
	if question, err = h.Store.Ask(r.Context(), pathID(r), question); err != nil {
		return err
	}
	w.Header().Set("Location", pathOf(pathID(r))+"/dialogue")
	return service.Encode(w, http.StatusCreated, reportapi.Question{
		ID: question.ID, Text: question.Text, AskedAt: question.At, AskedBy: personOf(&question.By),
		EndsOn: question.EndsOn, State: reportapi.QuestionState(question.State),
	})
}

// withdrawQuestion handles DELETE /reports/{id}/questions/{question_id}.
func (h Questions) withdrawQuestion(r *http.Request) error {
	return h.Store.Withdraw(r.Context(), pathID(r), openapi.PathID(r, "question_id"), user(r).AsOfficial())
}

// answerQuestion handles POST /reports/{id}/answers.
func (h Questions) answerQuestion(w http.ResponseWriter, r *http.Request, req reportapi.NewAnswer) error {
	answer, err := report.NewAnswer(req.Text, time.Now())
	if err != nil {
		return err
	}
	// The response is stored with the answer. It has no words: they are kept in one
	// place, from which an erasure removes them.
	response := reportapi.Answered{ID: answer.ID, AnsweredAt: answer.At}
	return addTo(w, r, req, response, "/dialogue", func(idempotent *report.Idempotent) ([]byte, error) {
		return h.Store.Answer(r.Context(), pathID(r), user(r).ID, answer, idempotent)
	})
}

// getDialogue handles GET /reports/{id}/dialogue.
func (h Questions) getDialogue(r *http.Request) (reportapi.Dialogue, error) {
	reader := user(r)
	dialogue, err := h.Store.Dialogue(r.Context(), pathID(r), reader)
	if err != nil {
		return reportapi.Dialogue{}, err
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
	return out, nil
}
