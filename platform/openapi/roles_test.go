package openapi_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A request is an operation of a document, and who may use it.
type request struct {
	id, method, path string
	public           bool
	roles            []string // none is all
}

// requestsOf returns all operations of a document, with a value in each path.
func requestsOf(t *testing.T, document []byte) []request {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		t.Fatal(err)
	}
	var requests []request
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			r := request{id: op.OperationID, method: method, path: regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "1")}
			if op.Security != nil {
				r.public = len(*op.Security) == 0 || slices.ContainsFunc(*op.Security, func(s openapi3.SecurityRequirement) bool { return len(s) == 0 })
			}
			for _, role := range asList(op.Extensions["x-roles"]) {
				r.roles = append(r.roles, role.(string))
			}
			requests = append(requests, r)
		}
	}
	return requests
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// own are the operations by which all who signed in change what is theirs alone: an
// auditor, too.
var own = regexp.MustCompile(`^/(me/|notifications/(1|read-all)$|session$)`)

// public are those that change something without a role; those of guests refuse all who are
// signed in.
var public = []string{"reportAbuse", "createDevToken", "closeSession", "createGuest", "openGuestSession"}

// An auditor may read all that operators may, and change nothing: of either service,
// and of each operation.
func TestAuditorsReadWhatOperatorsReadAndChangeNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"report", "notification"} {
		document, err := os.ReadFile("../../docs/openapi/" + name + "-service.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range requestsOf(t, document) {
			operator := len(r.roles) == 0 || slices.Contains(r.roles, "operator")
			auditor := len(r.roles) == 0 || slices.Contains(r.roles, "auditor")
			switch {
			case r.method == http.MethodGet && auditor != operator:
				t.Errorf("%s %s: that an operator may read it is %v, and an auditor %v", r.method, r.path, operator, auditor)
			case r.method != http.MethodGet && auditor && !own.MatchString(r.path) && !slices.Contains(public, r.id):
				t.Errorf("%s %s: an auditor may change something", r.method, r.path)
			}
		}
	}
}

// Each operation of both services refuses each role that its document does not name,
// and nobody else.
func TestEachOperationRefusesEachOtherRole(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"report", "notification"} {
		document, err := os.ReadFile("../../docs/openapi/" + name + "-service.yaml")
		if err != nil {
			t.Fatal(err)
		}
		requests := requestsOf(t, document)
		router := mountAll(t, document, requests)
		for _, r := range requests {
			for _, role := range append(auth.Roles(), auth.Connection, auth.Firm, "") {
				req := httptest.NewRequest(r.method, r.path, nil)
				if role != "" {
					req = req.WithContext(auth.With(t.Context(), auth.Principal{ID: "ann", Role: role}))
				}
				res := httptest.NewRecorder()
				router.ServeHTTP(res, req)
				refused := res.Code == http.StatusUnauthorized || res.Code == http.StatusForbidden
				machine := role == auth.Connection || role == auth.Firm
				allowed := r.public && !machine || role != "" && (len(r.roles) == 0 && !machine || slices.Contains(r.roles, string(role)) ||
					role == auth.Moderator && slices.Contains(r.roles, string(auth.Official)))
				if refused == allowed || res.Code == http.StatusNotFound {
					t.Errorf("%s %s as %q: status %d, roles %s", r.method, r.path, role, res.Code, strings.Join(r.roles, ", "))
				}
			}
		}
	}
}

// mountAll serves a document with operations that do nothing.
func mountAll(t *testing.T, document []byte, requests []request) http.Handler {
	t.Helper()
	formats := make(openapi.Formats)
	for _, match := range regexp.MustCompile(`format: ([\w-]+)`).FindAllSubmatch(document, -1) {
		formats[string(match[1])] = func(string) error { return nil }
	}
	maps.DeleteFunc(formats, func(format string, _ func(string) error) bool {
		return slices.Contains([]string{"date-time", "uuid", "date", "binary", "line", "text", "id"}, format)
	})
	doc, err := openapi.Load(document, formats)
	if err != nil {
		t.Fatal(err)
	}
	operations := make(openapi.Operations)
	for _, r := range requests {
		operations[r.id] = service.Operation{Handler: func(http.ResponseWriter, *http.Request) error { return nil }, Timeout: service.DefaultTimeout}
	}
	router := chi.NewRouter()
	if err := doc.Mount(router, service.Errors{Log: zerolog.Nop()}, operations); err != nil {
		t.Fatal(err)
	}
	return router
}
