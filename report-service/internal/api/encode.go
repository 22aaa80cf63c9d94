package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/cityconnect/cityconnect/platform/service"
)

// encode answers with body as JSON. What is answered depends on who asks, so
// that nobody else may keep it.
func encode(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	writeJSON(w, status, data)
	return nil
}

func writeJSON(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that left is no fault of ours
}

// decode reads the body of a request that the document let pass.
func decode[T any](r *http.Request) (T, error) {
	var body T
	err := json.NewDecoder(r.Body).Decode(&body)
	// Valid for the schema and not for Go: an integer written as 1.0, say.
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return body, service.InvalidInput.New("", service.FieldError{
			Pointer: "/" + strings.ReplaceAll(wrong.Field, ".", "/"), Detail: "want " + wrong.Type.String()})
	}
	if err != nil {
		return body, fmt.Errorf("decode body: %w", err)
	}
	return body, nil
}
