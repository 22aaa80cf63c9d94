// Package reportapi has the types of report-service's API, as docs/openapi/report-service.yaml
// describes them.
package reportapi

//go:generate env GOWORK=off go tool -modfile=../../../scripts/tools/go.mod oapi-codegen -config oapi-codegen.yaml ../../../docs/openapi/report-service.yaml
