package openapi

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Handlers has a handler for each operation, by its operationId.
type Handlers map[string]service.HandlerFunc

// Mount puts the operations of the document on r that are not there yet, each
// behind what the document asks for: a role, and a valid request. It fails if
// an operation has no handler.
func (d *Document) Mount(r chi.Router, handlers Handlers, errs service.Errors) error {
	for op := range d.operations() {
		h, ok := handlers[op.Operation.OperationID]
		switch {
		case ok:
			r.Method(op.Method, op.Path, op.handler(h, errs))
		case !r.Match(chi.NewRouteContext(), op.Method, op.Path):
			return fmt.Errorf("operation %s has no handler", op.Operation.OperationID)
		}
	}
	return nil
}

func (op *operation) handler(h service.HandlerFunc, errs service.Errors) http.Handler {
	checked := errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := op.check(r); err != nil {
			return err
		}
		return h(w, r)
	})
	if op.public() {
		return checked
	}
	return auth.Require(op.roles()...)(checked)
}
