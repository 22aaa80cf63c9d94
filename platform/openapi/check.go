package openapi

import (
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/go-chi/chi/v5"

	"github.com/cityconnect/cityconnect/platform/service"
)

// check compares r with the document and returns a problem with its faults.
// It fills in the defaults of missing parameters. Once it has passed, r has no
// parameter that the document does not know.
func (op *operation) check(r *http.Request) error {
	var faults faultList
	query := faults.parseQuery(r.URL)
	if err := faults.problem(); err != nil { // the rest would stumble over them
		return err
	}
	op.parameterFaults(r, query, &faults)
	if op.body != nil && !(op.optional && r.ContentLength == 0) {
		if err := op.checkJSON(r, &faults); err != nil {
			return err
		}
	}
	if op.upload != nil {
		if _, err := checkContent(op.upload, r); err != nil {
			return err
		}
		if r.ContentLength == 0 {
			return service.MalformedBody.New("the body is missing")
		}
	}
	op.schemaFaults(r, query, &faults)
	return faults.problem()
}

// schemaFaults compares the parameters that have no fault yet with their schemas.
// openapi3filter's own ValidateRequest would do the rest, too, and read all of the
// body for it, an upload as well.
func (op *operation) schemaFaults(r *http.Request, query url.Values, faults *faultList) {
	input := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: pathParams(r), QueryParams: query, Route: &op.Route, Options: op.options,
	}
	for _, p := range op.parameters {
		if faults.more {
			return
		}
		if faults.has(p.Name) {
			continue
		}
		op.formats.addRequest(faults, openapi3filter.ValidateParameter(r.Context(), input, p))
	}
}

func pathParams(r *http.Request) map[string]string {
	rc := chi.RouteContext(r.Context())
	params := make(map[string]string, len(rc.URLParams.Keys))
	for i, key := range rc.URLParams.Keys {
		params[key] = rc.URLParams.Values[i]
	}
	return params
}

// checkContent refuses a body whose type content does not name, such as image/*, and
// returns the parameters of the type. What a body really is, its reader has to find out.
func checkContent(content openapi3.Content, r *http.Request) (params map[string]string, err error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || content.Get(mediaType) == nil {
		return nil, service.UnsupportedMediaType.New("the body must be " + strings.Join(slices.Sorted(maps.Keys(content)), " or "))
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, service.UnsupportedMediaType.New("the body must be sent without a Content-Encoding")
	}
	return params, nil
}
