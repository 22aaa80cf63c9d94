package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/owndata"
)

// readOwnData handles GET /me/data.
func (s *server) readOwnData(w http.ResponseWriter, r *http.Request) error {
	answer, err := s.OwnData(r.Context(), auth.Must(r).ID)
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
func (s *server) openAddress(sealed json.RawMessage) (json.RawMessage, error) {
	var contact map[string]any
	var of struct {
		ID      uuid.UUID `json:"id"`
		Address string    `json:"address"`
	}
	if err := json.Unmarshal(sealed, &contact); err != nil {
		return nil, fmt.Errorf("read own contact: %w", err)
	}
	if err := json.Unmarshal(sealed, &of); err != nil {
		return nil, fmt.Errorf("read own contact: %w", err)
	}
	delete(contact, "address")
	if s.Mail.Keys != nil {
		address, err := s.Mail.Keys.Open(of.ID, of.Address)
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
