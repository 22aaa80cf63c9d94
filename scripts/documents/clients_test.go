package documents

import (
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"strings"
	"testing"
)

// A Go client that is generated from a document, as docs/openapi/oapi-codegen.yaml
// says, compiles. The client's own dependencies are not needed for
// that: what they have is taken for granted.
func TestGeneratedClientsCompile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"report-service", "notification-service"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			generate := exec.CommandContext(t.Context(), "go", "tool", "oapi-codegen",
				"-config", "../../docs/openapi/oapi-codegen.yaml", "../../docs/openapi/"+name+".yaml")
			generate.Dir = root + "/scripts/tools"
			generate.Env = append(generate.Environ(), "GOWORK=off")
			var complaints strings.Builder
			generate.Stderr = &complaints
			source, err := generate.Output()
			if err != nil {
				t.Fatalf("oapi-codegen: %v\n%s", err, &complaints)
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, name+".go", source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			faults := 0
			config := types.Config{
				Importer: standard{importer.ForCompiler(files, "source", nil)},
				Error: func(err error) {
					if strings.Contains(err.Error(), errForeign.Error()) {
						return
					}
					if faults++; faults <= 10 {
						t.Error(err)
					}
				},
			}
			_, _ = config.Check("client", files, []*ast.File{file}, nil) // Error has told of each fault
			if len(source) < 10_000 {
				t.Errorf("the client has %d bytes", len(source))
			}
		})
	}
}

// errForeign is of packages that are not Go's own: the checker then takes everything
// for granted that they are used for.
var errForeign = errors.New("not of Go itself")

// standard imports the packages of Go itself.
type standard struct{ types.Importer }

// Import implements types.Importer.
func (s standard) Import(name string) (*types.Package, error) {
	if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") {
		return nil, errForeign
	}
	return s.Importer.Import(name)
}
