// Package notificationapi has the types of notification-service's API, as docs/openapi/notification-service.yaml
// describes them.
package notificationapi

//go:generate env GOWORK=off go tool -modfile=../../../scripts/tools/go.mod oapi-codegen -config oapi-codegen.yaml ../../../docs/openapi/notification-service.yaml
