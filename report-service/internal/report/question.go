package report

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// The kinds of faults that only questions have.
const (
	AskedAlready fault.Kind = "asked already"
	NotAsked     fault.Kind = "not asked"
)

// The faults of questions.
var (
	ErrAskedAlready = fault.New(AskedAlready, "the report has an open question already")
	// ErrCallerCannotAnswer refuses a question about a report that an official filed for
	// somebody: they have no account to answer with.
	ErrCallerCannotAnswer = fault.New(fault.Conflict, "the report was filed for somebody without an account, who cannot answer on the page")
	ErrNotAsked           = fault.New(NotAsked, "no question about the report is open")
	// ErrUnknownQuestion refuses a request about a question that does not exist.
	ErrUnknownQuestion = fault.New(fault.NotFound, "there is no such question about the report")
)

// A QuestionState is how far a question is.
//
//	                    ┌──► answered, by the reporter
//	(asked) ──► open ───┼──► withdrawn, by an official or with the end of the report
//	                    └──► expired, because its time is over
type QuestionState string

// The states of a question.
const (
	QuestionOpen      QuestionState = "open"
	QuestionAnswered  QuestionState = "answered"
	QuestionWithdrawn QuestionState = "withdrawn"
	QuestionExpired   QuestionState = "expired"
)

// A Question is an official's to the reporter of a report. The reporter and officials
// alone may read it.
type Question struct {
	ID     uuid.UUID
	Text   string
	By     Official
	At     time.Time
	EndsOn string // the last day for an answer, such as 2026-12-11
	State  QuestionState
}

// An OpenQuestion is what lists say of a question that waits for an answer.
type OpenQuestion struct {
	ID     uuid.UUID `json:"id"`
	At     time.Time `json:"asked_at"`
	EndsOn string    `json:"ends_on"`
}

// An Answer is the reporter's to a question. Officials and the reporter alone may read
// it.
type Answer struct {
	ID   uuid.UUID
	Text string
	At   time.Time
}

// A Dialogue has the questions about a report with the answers to them, and what its
// reporter has said about its resolutions, both oldest first.
type Dialogue struct {
	Exchanges []Exchange
	Verdicts  []SaidVerdict
}

// An Exchange is a question with its answer, if there is one.
type Exchange struct {
	Question
	Answer *Answer
}

// NewQuestion returns the open question of an official.
func NewQuestion(text string, by Official, now time.Time) (Question, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Question{}, fault.NewInvalid("/text", "must not be blank")
	}
	return Question{ID: uuid.Must(uuid.NewV7()), Text: text, By: by, At: stored(now), State: QuestionOpen}, nil
}

// NewAnswer returns the answer of a reporter.
func NewAnswer(text string, now time.Time) (Answer, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Answer{}, fault.NewInvalid("/text", "must not be blank")
	}
	return Answer{ID: uuid.Must(uuid.NewV7()), Text: text, At: stored(now)}, nil
}
