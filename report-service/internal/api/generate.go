package api

//go:generate cp ../../../docs/openapi/report-service.yaml openapi.yaml
