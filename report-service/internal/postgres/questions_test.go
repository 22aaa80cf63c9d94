package postgres_test

import (
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// questionDays is how many working days a reporter has in these tests.
const questionDays = 10

// ask asks the reporter of a report something as olga.
func (f *fixture) ask(id uuid.UUID) report.Question {
	f.t.Helper()
	q, err := report.NewQuestion("Which of the two lamps?", olga, time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	if q, err = f.questions.Ask(f.t.Context(), id, q); err != nil {
		f.t.Fatalf("Ask: %v", err)
	}
	return q
}
