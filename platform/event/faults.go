package event

import (
	"encoding/json"
	"errors"
)

// samples are values that keep the contract, by field.
var samples = map[string]json.RawMessage{
	"report_id": json.RawMessage(`"0198c0de-0000-7000-8000-000000000001"`), "report_version": json.RawMessage(`1`),
	"report_title": json.RawMessage(`"-"`), "reporter_id": json.RawMessage(`""`), "reporter_name": json.RawMessage(`""`),
	"timestamp": json.RawMessage(`1`), "latitude": json.RawMessage(`null`), "longitude": json.RawMessage(`null`),
	"new_status": json.RawMessage(`"pending"`), "note": json.RawMessage(`""`),
	"category_id": json.RawMessage(`1`), "category_name": json.RawMessage(`"-"`), "privacy_level": json.RawMessage(`"public"`),
	"voter_id": json.RawMessage(`"-"`), "vote_type": json.RawMessage(`"upvote"`), "new_score": json.RawMessage(`0`),
	"action": json.RawMessage(`"redacted"`), "hidden": json.RawMessage(`false`), "redacted_notes": json.RawMessage(`[]`),
	"due_at": json.RawMessage(`1`), "level": json.RawMessage(`1`),
	"guest":    json.RawMessage(`"-"`),
	"photo_id": json.RawMessage(`"0198c0de-0000-7000-8000-000000000001"`), "reason": json.RawMessage(`"failed"`),
	"question_id": json.RawMessage(`"0198c0de-0000-7000-8000-000000000001"`), "ends_on": json.RawMessage(`"2026-12-11"`),
	"job_id": json.RawMessage(`"0198c0de-0000-7000-8000-000000000001"`), "kind": json.RawMessage(`"asked"`), "number": json.RawMessage(`"-"`),
	"address": json.RawMessage(`""`), "text": json.RawMessage(`""`), "photos": json.RawMessage(`[]`), "mailbox": json.RawMessage(`"-"`), "token": json.RawMessage(`""`),
}

// Faults returns an error as Decode does for each field of body that breaks the
// contract, so that its editor sees all faults at once. A body that is
// not a JSON object has one.
func Faults(key Key, body []byte) []error {
	faults, _ := mend(key, body)
	return faults
}

// mend returns the faults of body, and the body with samples in their place.
func mend(key Key, body []byte) (faults []error, mended []byte) {
	for range len(samples) {
		_, err := Decode(key, body)
		if err == nil {
			break
		}
		faults = append(faults, err)
		wrong, ok := errors.AsType[*FieldError](err)
		var fields map[string]json.RawMessage
		if !ok || samples[wrong.Field] == nil || json.Unmarshal(body, &fields) != nil {
			break
		}
		fields[wrong.Field] = samples[wrong.Field]
		if body, err = json.Marshal(fields); err != nil {
			break
		}
	}
	return faults, body
}
