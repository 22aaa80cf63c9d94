package deadletter

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/text"
)

// An Edit is a new body for a dead letter.
type Edit struct {
	Body    []byte
	ID      string // the new message's
	Changes []Change
}

// A ContractError says in which ways a body breaks the contract. It quotes nothing of
// the body.
type ContractError struct{ Faults []string }

// Error returns all faults.
func (e *ContractError) Error() string { return strings.Join(e.Faults, "; ") }

// NewEdit checks the body that an operator wrote for e against the contract.
// Values that were masked for the operator are put back. A body that breaks the
// contract is a *ContractError.
func NewEdit(e *Entry, body json.RawMessage) (Edit, error) {
	edited, err := text.JSON(body)
	if _, object := edited.(map[string]any); err != nil || !object {
		return Edit{}, fault.NewInvalid("/body", "must be a JSON object")
	}
	original, _ := text.JSON(e.Body) // if it is not JSON, nothing is put back
	edited, err = unmask(edited, original)
	if err != nil {
		return Edit{}, fault.NewInvalid("/body", "must leave masked values where they were, or have others in their place")
	}
	whole := encodeJSON(edited)
	if faults := event.Faults(event.Key(e.Type), whole); len(faults) > 0 {
		broken := new(ContractError)
		for _, err := range faults {
			broken.Faults = append(broken.Faults, failure.Undecodable(err).Text)
		}
		return Edit{}, broken
	}
	return Edit{Body: whole, ID: uuid.NewString(), Changes: diff(MaskBody(e.Body), MaskBody(whole))}, nil
}
