package api

//go:generate cp ../../../docs/openapi/notification-service.yaml openapi.yaml
