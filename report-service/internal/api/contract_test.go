package api_test

import (
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/openapitest"
)

// document is what every answer in these tests is held to.
var document = openapitest.New("../../../docs/openapi/report-service.yaml")

// open311Document is the same for what is below /open311.
var open311Document = openapitest.New("../../../docs/openapi/open311.yaml")

func TestDocumentObeysTheRules(t *testing.T) {
	t.Parallel()
	document.CheckRules(t)
}

func TestServedDocumentIsWhole(t *testing.T) {
	t.Parallel()
	a := newServer(t).do(call{method: "GET", path: "/openapi.json"})
	document.CheckServed(t, a.body)
	if !strings.Contains(string(a.body), "dependentRequired") {
		t.Error("the served document lost dependentRequired")
	}
}
