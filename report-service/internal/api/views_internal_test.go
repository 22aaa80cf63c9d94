package api

import (
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/openapitest"
)

// Between the database and an answer to operators, no field gets lost.
func TestOutboxViewsAreWhole(t *testing.T) {
	t.Parallel()
	openapitest.CheckView(t, outboxMessageOf, "Seq") // which is the cursor
	openapitest.CheckView(t, outboxRefusalOf, "Seq")
	openapitest.CheckView(t, outboxActOf)
}
