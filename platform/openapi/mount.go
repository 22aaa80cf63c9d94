package openapi

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Operations answer the operations of a document, by their operationId.
type Operations map[string]service.Operation

// Mount puts the operations of the document on r that are not there yet, each
// behind the document's requirements: a role, and a valid request. It fails if
// an operation has no handler, more than one, or no timeout.
func (d *Document) Mount(r chi.Router, errs service.Errors, parts ...Operations) error {
	operations := make(Operations)
	for _, part := range parts {
		for id, o := range part {
			if _, ok := operations[id]; ok {
				return fmt.Errorf("operation %s has two handlers", id)
			}
			operations[id] = o
		}
	}
	for op := range d.operations() {
		id := op.Operation.OperationID
		o, ok := operations[id]
		switch {
		case !ok && r.Match(chi.NewRouteContext(), op.Method, op.Path):
		case o.Handler == nil:
			return fmt.Errorf("operation %s has no handler", id)
		case o.Timeout == 0:
			return fmt.Errorf("operation %s has no timeout", id)
		default:
			r.Method(op.Method, op.Path, op.handler(o.Handle, errs))
		}
	}
	return nil
}

// PathID returns the id with that name in the path of a request that the document let pass.
func PathID(r *http.Request, name string) uuid.UUID { return id(r.PathValue(name)) }

// QueryID returns the id with that name in the query of a request that the document let
// pass; uuid.Nil without one.
func QueryID(r *http.Request, name string) uuid.UUID { return id(r.URL.Query().Get(name)) }

// id returns the id that text is, or uuid.Nil, which nothing has.
func id(text string) uuid.UUID {
	found, _ := uuid.Parse(text)
	return found
}

func (op *operation) handler(h service.HandlerFunc, errs service.Errors) http.Handler {
	checked := errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := op.check(r); err != nil {
			return err
		}
		if err := h(w, r); err != nil {
			return fmt.Errorf("%s: %w", op.Operation.OperationID, err) // for the log
		}
		return nil
	})
	if op.public() {
		return auth.Open(op.roles()...)(checked)
	}
	return auth.Require(op.roles()...)(checked)
}
