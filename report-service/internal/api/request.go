package api

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// changeTimeout is how long a change may wait until it is decided. After that
// most clients have given up, and may have sent another request. So changes
// that a process finds after it was frozen are refused as well.
const changeTimeout = 5 * time.Second

// user returns who makes the request, a connection or a person; the zero value for somebody
// without a session.
func user(r *http.Request) report.User {
	if connection, ok := r.Context().Value(connectionKey{}).(report.User); ok {
		return connection
	}
	principal, _ := auth.From(r.Context())
	by := report.User{ID: principal.ID, Name: principal.Name, Official: principal.Official(), Guest: principal.Guest}
	if principal.Limited() {
		by.Scope = report.ScopeOf(principal.Departments)
	}
	return by
}

// answered answers a request with what h returns.
func answered[T any](h func(r *http.Request) (T, error)) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		answer, err := h(r)
		return service.Answer(w, http.StatusOK, answer, err)
	}
}

// answeredTo is answered for requests with a body.
func answeredTo[Body, T any](h func(r *http.Request, body Body) (T, error)) service.HandlerFunc {
	return service.Decoded(func(w http.ResponseWriter, r *http.Request, body Body) error {
		return answered(func(r *http.Request) (T, error) { return h(r, body) })(w, r)
	})
}

// done answers a request that h has done with no content.
func done(h func(r *http.Request) error) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error { return service.Done(w, h(r)) }
}

// send answers with content that is not JSON.
func send(w http.ResponseWriter, contentType string, content []byte) error {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(content) // the client may have left
	return nil
}

// pathID returns the id in the path.
func pathID(r *http.Request) uuid.UUID { return openapi.PathID(r, "id") }

func pathOf(id uuid.UUID) string { return "/reports/" + id.String() }

// intParam returns the integer in the query parameter with the name; 0 without one.
func intParam(r *http.Request, name string) int { return int(service.Number(r.URL.Query().Get(name))) }

// ifMatch returns the versions at which the request may change a report.
func ifMatch(r *http.Request) report.Versions {
	header := r.Header.Get("If-Match")
	if header == "" {
		return report.Versions{}
	}
	return checked(report.ParseIfMatch, header)
}

// checked returns what parse reads in a text that the document let pass.
func checked[T any](parse func(string) (T, error), text string) T {
	t, err := parse(text)
	if err != nil {
		panic(fmt.Sprintf("api: what the document let pass: %v", err))
	}
	return t
}

// idempotentOf returns nil without a key. Requests with the same content count
// as the same, however it is formatted.
func idempotentOf(r *http.Request, req any) (*report.Idempotent, error) {
	key, err := idempotencyKey(r.Header.Get("Idempotency-Key"))
	if key == "" {
		return nil, err
	}
	content, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return &report.Idempotent{UserID: user(r).ID, Key: key, Request: sha256.Sum256(content)}, nil
}

// idempotentAt is idempotentOf with a key that applies to the report and the operation in the
// path alone: no client's key contains a space. The answer to a repetition is made again.
func idempotentAt(r *http.Request, req any, of ...string) (*report.Idempotent, error) {
	idempotent, err := idempotentOf(r, req)
	if idempotent != nil {
		idempotent.Key = strings.Join(append([]string{pathID(r).String()}, append(of, idempotent.Key)...), " ")
		idempotent.Response = []byte("{}")
	}
	return idempotent, err
}

// addTo answers a request that adds something to the report in the path, with the path
// below it where readers find that. The answer is known before add stores both, and that
// of an earlier request with the same key takes its place.
func addTo(w http.ResponseWriter, r *http.Request, req, answer any, below string, add func(*report.Idempotent) (earlier []byte, err error)) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	idempotent, err := idempotentAt(r, req)
	if err != nil {
		return err
	}
	if idempotent != nil {
		idempotent.Response = body
	}
	earlier, err := add(idempotent)
	if err != nil {
		return err
	}
	if earlier != nil {
		body = earlier
	}
	w.Header().Set("Location", pathOf(pathID(r))+below)
	service.WriteJSON(w, http.StatusCreated, body)
	return nil
}

// idempotencyKey returns the key in a header, or "" without one. A key in quotes, as
// in the IETF's draft of this header, is the same as without them.
func idempotencyKey(header string) (string, error) {
	quoted, ok := strings.CutPrefix(header, `"`)
	if !ok {
		return header, nil
	}
	key, ok := strings.CutSuffix(quoted, `"`)
	key = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(key) // RFC 9651, 3.3.3
	if !ok || key == "" {
		return "", fault.NewInvalid("Idempotency-Key", "must be a key, or a key in double quotes")
	}
	return key, nil
}

// networkOf returns the network of the client, as which all its addresses count.
func networkOf(r *http.Request) string { return service.Network(service.ClientAddress(r)).String() }

// origin returns where the client finds the page: programs that show links take
// addresses with a host alone. It goes to who sent the host, and is kept nowhere.
func origin(r *http.Request) string {
	scheme, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	if scheme != "https" {
		scheme = "http"
	}
	return scheme + "://" + r.Host
}
