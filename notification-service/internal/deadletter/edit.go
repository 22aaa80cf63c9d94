package deadletter

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/failure"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// An Edit is a new body for a dead letter.
type Edit struct {
	Body    []byte
	ID      string // the new message's
	Changes []Change
}

// NewEdit checks the body that an operator wrote for e against the contract.
// What the operator was not shown is put back.
func NewEdit(e *Entry, body json.RawMessage) (Edit, error) {
	var edited map[string]json.RawMessage
	if err := json.Unmarshal(body, &edited); err != nil || edited == nil {
		return Edit{}, fault.NewInvalid("/body", "want a JSON object")
	}
	unmask(edited, fields(e.Body))
	whole, err := json.Marshal(edited)
	if err != nil {
		return Edit{}, fmt.Errorf("encode edited body: %w", err)
	}
	if _, err := event.Decode(event.Key(e.Type), whole); err != nil {
		return Edit{}, fault.NewInvalid("/body", failure.Undecodable(err).Text)
	}
	return Edit{Body: whole, ID: uuid.NewString(), Changes: diff(MaskBody(e.Body), MaskBody(whole))}, nil
}
