package openapi

import (
	"errors"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
)

// plain makes sure that a request to op can be checked without the keywords
// of JSON Schema 2020-12, see Document.plain.
func (op *operation) plain() error {
	for _, p := range op.parameters {
		if err := plain(p.Schema.Value, false); err != nil {
			return fmt.Errorf("operation %s: parameter %s: %w", op.Operation.OperationID, p.Name, err)
		}
	}
	if op.body == nil {
		return nil
	}
	if err := plain(op.body, true); err != nil {
		return fmt.Errorf("operation %s: body: %w", op.Operation.OperationID, err)
	}
	return nil
}

var (
	errNotPlain  = errors.New("uses a keyword that requests are not checked for")
	errUnbounded = errors.New("has a list without maxItems, a schema without a type, or a keyword below which bodies are not trimmed")
)

// plain walks root and everything below it. At the top of a body dependentRequired is
// welcome: dependentFaults sees to it. Nothing in a body may be where tidying.tidy
// does not get, and be as long as the client likes.
func plain(root *openapi3.Schema, isBody bool) error {
	return openapi3.NewSchemaRef("", root).WalkSubtree(func(_ string, ref *openapi3.SchemaRef) error {
		s := ref.Value
		if s.Const != nil || len(s.PrefixItems) > 0 || s.Contains != nil || len(s.PatternProperties) > 0 ||
			len(s.DependentSchemas) > 0 || s.PropertyNames != nil || s.If != nil || s.ContentSchema != nil ||
			s.UnevaluatedItems.Has != nil || s.UnevaluatedItems.Schema != nil ||
			s.UnevaluatedProperties.Has != nil || s.UnevaluatedProperties.Schema != nil ||
			len(s.DependentRequired) > 0 && (!isBody || s != root) {
			return errNotPlain
		}
		if isBody && (s.Type.Permits(openapi3.TypeArray) && (s.Items == nil || s.MaxItems == nil) ||
			s.AdditionalProperties.Schema != nil || len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Not != nil) {
			return errUnbounded
		}
		return nil
	})
}
