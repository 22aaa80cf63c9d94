package deadletter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

// A message that is too large to be published fails by itself and holds up no other;
// one with headers that are too large is sent without them.
func TestReplayOfWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	h.StartArchive()
	h.Start()
	h.WaitSubscribed(1)
	body, headers, good := letterOf(h, time.Now()), letterOf(h, time.Now()), letterOf(h, time.Now())
	body.Body = make([]byte, rabbit.MaxBody+1)
	headers.Headers = []byte(strings.Replace(string(headers.Headers), "{", `{"x-note": "`+strings.Repeat("x", rabbit.MaxHeaders)+`",`, 1))
	if err := h.Letters.Archive(t.Context(), []deadletter.Letter{body, headers, good}); err != nil {
		t.Fatal(err)
	}
	replay := waitEnded(t, h, mustReplay(t, h.Letters, everyVote).ID)
	if replay.State != deadletter.Done || replay.Resolved != 2 || replay.Failed != 1 {
		t.Errorf("the replay is %s with %d resolved and %d failed, want done with 2 and 1", replay.State, replay.Resolved, replay.Failed)
	}
	again := h.Count(`select count(*) from dead_letters where message_id = $1 and state = 'open' and deaths = 2 and error_class = 'permanent'`, body.MessageID)
	if again != 1 {
		t.Error("what is too large is not open again")
	}
	h.CheckEffects(2)
}
