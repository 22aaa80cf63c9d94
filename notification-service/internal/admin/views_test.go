package admin

import (
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/openapitest"
)

// Between the database and an answer, no field gets lost. The compiler does not
// see that: a field that a view leaves out has its zero value, which keeps to
// the document.
func TestViewsAreWhole(t *testing.T) {
	t.Parallel()
	openapitest.CheckView(t, letterOf, "Attempts") // only a letter alone has them
	openapitest.CheckView(t, attemptOf)
	openapitest.CheckView(t, statOf)
	openapitest.CheckView(t, groupOf)
	openapitest.CheckView(t, noteOf)
	openapitest.CheckView(t, changeOf)
	openapitest.CheckView(t, pointOf)
	openapitest.CheckView(t, auditOf)
	openapitest.CheckView(t, replayOf, "Taking", "Reopening") // what its Replayer is about to do
	openapitest.CheckView(t, poolOf, "Copies")                // where it is comes from the broker
	openapitest.CheckView(t, copiesOf)
	openapitest.CheckView(t, findingOf)
}
