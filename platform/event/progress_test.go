package event_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
)

// Progress as today's worker sends it is read, with fields that a later one adds, and
// nothing else is.
func TestPhotoProgress(t *testing.T) {
	t.Parallel()
	want := event.PhotoProgress{To: "v2.k1.x", ReportID: uuid.New(), PhotoID: uuid.New(), Stage: event.PhotoScanning}
	body, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := event.DecodePhotoProgress(append([]byte(`{"later":1,`), body[1:]...))
	if err != nil || got != want {
		t.Errorf("got %+v, want %+v (error %v)", got, want, err)
	}
	const ids = `"report_id":"0192f0c1-0000-7000-8000-000000000000","photo_id":"0192f0c1-0000-7000-8000-000000000001"`
	for body, field := range map[string]string{
		`x`: "body", `[]`: "body", `{}`: "report_id", `{"report_id":1}`: "body",
		`{"report_id":"0192f0c1-0000-7000-8000-000000000000"}`: "photo_id",
		`{` + ids + `}`:                   "stage",
		`{` + ids + `,"stage":"sending"}`: "stage",
	} {
		_, err := event.DecodePhotoProgress([]byte(body))
		if wrong, ok := errors.AsType[*event.FieldError](err); !ok || wrong.Field != field {
			t.Errorf("%s: error %v, want one of %s", body, err, field)
		}
	}
}
