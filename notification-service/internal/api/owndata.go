package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/owndata"
	"github.com/cityconnect/cityconnect/platform/service"
)

// OwnData is what is held about a person.
type OwnData struct {
	Read func(ctx context.Context, userID string) (owndata.Answer, error) // with the address sealed
	Keys *email.Keys                                                      // nil in a city without mails
}

// Operations are those on own data.
func (s OwnData) Operations() openapi.Operations {
	return openapi.Operations{"readOwnData": {Handler: s.read, Timeout: service.DefaultTimeout}}
}

// read handles GET /me/data.
func (s OwnData) read(w http.ResponseWriter, r *http.Request) error {
	answer, err := s.Read(r.Context(), auth.Must(r).ID)
	if err != nil {
		return err
	}
	for i, sealed := range answer.Data["contact"] {
		if answer.Data["contact"][i], err = s.openAddress(sealed); err != nil {
			return err
		}
	}
	return owndata.Send(w, answer)
}

// openAddress returns a contact with its address readable, or without it where the city
// no longer has the key.
func (s OwnData) openAddress(sealed json.RawMessage) (json.RawMessage, error) {
	var contact map[string]any
	var of struct {
		ID      uuid.UUID `json:"id"`
		Address string    `json:"address"`
	}
	if err := errors.Join(json.Unmarshal(sealed, &contact), json.Unmarshal(sealed, &of)); err != nil {
		return nil, fmt.Errorf("read own contact: %w", err)
	}
	delete(contact, "address")
	if s.Keys != nil {
		address, err := s.Keys.Open(of.ID, of.Address)
		if err != nil {
			return nil, err
		}
		contact["address"] = address
	}
	open, err := json.Marshal(contact)
	if err != nil {
		return nil, fmt.Errorf("write own contact: %w", err)
	}
	return open, nil
}
