package open311

//go:generate cp ../../../docs/openapi/open311.yaml openapi.yaml
