package deadletter

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/onejson"
)

// An Edit is a new body for a dead letter.
type Edit struct {
	Body    []byte
	ID      string // the new message's
	Changes []Change
}

// NewEdit checks the body that an operator wrote for e against the contract.
// Values that were masked for the operator are put back.
func NewEdit(e *Entry, body json.RawMessage) (Edit, error) {
	edited, err := onejson.Decode(body)
	if _, object := edited.(map[string]any); err != nil || !object {
		return Edit{}, fault.NewInvalid("/body", "must be a JSON object")
	}
	original, _ := onejson.Decode(e.Body) // if it is not JSON, nothing is put back
	edited, err = unmask(edited, original)
	if err != nil {
		return Edit{}, fault.NewInvalid("/body", "must leave masked values where they were, or have others in their place")
	}
	whole := encodeJSON(edited)
	if _, err := event.Decode(event.Key(e.Type), whole); err != nil {
		return Edit{}, fault.NewInvalid("/body", failure.Undecodable(err).Text)
	}
	return Edit{Body: whole, ID: uuid.NewString(), Changes: diff(MaskBody(e.Body), MaskBody(whole))}, nil
}
