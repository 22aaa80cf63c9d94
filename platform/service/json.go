package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Encode answers with body as JSON. The answer depends on the caller, so that no
// cache may keep it.
func Encode(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	WriteJSON(w, status, data)
	return nil
}

// Answer answers with body as Encode does, unless err says that there is none.
func Answer(w http.ResponseWriter, status int, body any, err error) error {
	if err != nil {
		return err
	}
	return Encode(w, status, body)
}

// WriteJSON answers with data, which is JSON already, and a newline.
func WriteJSON(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(data[:len(data):len(data)], '\n')) // fails if the client has left
}

// NoContent answers that all is done.
func NoContent(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Done answers that all is done, unless err says that it is not.
func Done(w http.ResponseWriter, err error) error {
	if err != nil {
		return err
	}
	return NoContent(w)
}

// Decoded passes the body of the request to h, as Decode reads it.
func Decoded[T any](h func(w http.ResponseWriter, r *http.Request, body T) error) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		body, err := Decode[T](r)
		if err != nil {
			return err
		}
		return h(w, r, body)
	}
}

// Decode reads the body of a request that the OpenAPI document let pass. A body
// that the document lets be missing leaves T as it is. What only Go refuses,
// such as an integer that is written as 1e30, is the problem InvalidInput.
func Decode[T any](r *http.Request) (T, error) {
	var body T
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return body, fmt.Errorf("read body: %w", err)
	}
	if len(data) == 0 {
		return body, nil
	}
	err = json.Unmarshal(data, &body)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return body, InvalidInput.New("", FieldError{
			Pointer: "/" + strings.ReplaceAll(wrong.Field, ".", "/"), Detail: "must be " + typeOf(wrong)})
	}
	if err != nil {
		return body, MalformedBody.New("not what the document asks for")
	}
	return body, nil
}

// Number reads a whole number that the OpenAPI document let pass; none is 0. It panics
// on any other text.
func Number(text string) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("service: number that the document let pass: %v", err))
	}
	return n
}

// typeOf says in the words of JSON what the value must be for Go to read it.
func typeOf(e *json.UnmarshalTypeError) string {
	if name := e.Type.String(); strings.HasPrefix(name, "int") || strings.HasPrefix(name, "uint") {
		return "an integer in plain digits, such as 10, that fits " + name
	}
	return "of another type"
}

// NextLink sets the header Link to the address of the next page (RFC 8288). It
// repeats the request's query, which holds no parameter that the document does not
// know.
func NextLink(w http.ResponseWriter, r *http.Request, cursor string) {
	query := r.URL.Query()
	query.Set("cursor", cursor)
	w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.Path, query.Encode()))
}

// Each returns the views of items for an answer; of none it is an empty list and not null.
func Each[From, To any](items []From, view func(From) To) []To {
	views := make([]To, len(items))
	for i, item := range items {
		views[i] = view(item)
	}
	return views
}

// OrZero returns what p points to, or the zero value, which an answer leaves out.
func OrZero[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}
