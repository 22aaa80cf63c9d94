package api

//go:generate env GOWORK=off go tool -modfile=../../../scripts/tools/go.mod oapi-codegen -config oapi-codegen.yaml ../../../docs/openapi/notification-service.yaml
//go:generate cp ../../../docs/openapi/notification-service.yaml openapi.yaml
