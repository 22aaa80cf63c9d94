package event

import "github.com/google/uuid"

// QuestionAsked says that an official has asked the reporter something. It does not
// have the text, which the reporter and officials read at the report. The version is
// that of the report, which does not change by it, nor by the messages below.
type QuestionAsked struct {
	Subject
	QuestionID uuid.UUID `json:"question_id"`
	EndsOn     string    `json:"ends_on"` // the last day for an answer, such as 2026-12-11
}

// Key returns AskedKey.
func (*QuestionAsked) Key() Key { return AskedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *QuestionAsked) Validate() error {
	return m.check(isID("question_id", m.QuestionID), date("ends_on", m.EndsOn))
}

// QuestionReminded says that half of the time for an answer is over, and that there
// is none.
type QuestionReminded struct {
	Subject
	QuestionID uuid.UUID `json:"question_id"`
	EndsOn     string    `json:"ends_on"`
}

// Key returns RemindedKey.
func (*QuestionReminded) Key() Key { return RemindedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *QuestionReminded) Validate() error {
	return m.check(isID("question_id", m.QuestionID), date("ends_on", m.EndsOn))
}

// ReportAnswered says that the reporter has answered a question. It is for officials,
// has neither the text nor a name, and report-service never names the reporter in it.
// Its sealed recipient is the official who asked.
type ReportAnswered struct {
	Subject
	QuestionID uuid.UUID `json:"question_id"`
}

// Key returns AnsweredKey.
func (*ReportAnswered) Key() Key { return AnsweredKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportAnswered) Validate() error { return m.check(isID("question_id", m.QuestionID)) }

// QuestionExpired says that the time for an answer is over, and that there is none.
// It is for the same readers as ReportAnswered.
type QuestionExpired struct {
	Subject
	QuestionID uuid.UUID `json:"question_id"`
}

// Key returns ExpiredKey.
func (*QuestionExpired) Key() Key { return ExpiredKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *QuestionExpired) Validate() error { return m.check(isID("question_id", m.QuestionID)) }
