package broadcast

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
)

// A message is as long for one recipient as for another, and for the first
// notification as for the last: its length tells nothing.
func TestLengthTellsNothing(t *testing.T) {
	t.Parallel()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	const id = "0192f0c1-0000-7000-8000-000000000000"
	at := time.Now().UTC().Truncate(time.Second)
	length := 0
	for _, n := range []notification.Notification{
		{Stream: notification.UserStream("a"), Epoch: "e", Seq: 1},
		{Stream: notification.UserStream("benedictus.maximilian@city.example"), Epoch: "12345678", Seq: 40_000},
		{Stream: notification.UserStream(strings.Repeat("u", 255)), Epoch: "12345678", Seq: math.MaxInt64},
		{Stream: notification.Officials, Epoch: "1234", Seq: 77},
	} {
		n.ID, n.Data, n.CreatedAt = uuid.MustParse(id), json.RawMessage(`{"type":"report.created"}`), at
		want := announcement{notification.Batch{Notifications: []notification.Notification{n}}, time.Unix(0, at.UnixNano())}
		body, err := json.Marshal(seal(want, keys))
		if err != nil {
			t.Fatal(err)
		}
		if length == 0 {
			length = len(body)
		}
		if len(body) != length {
			t.Errorf("the message for %s at %d has %d bytes, that of the first %d", n.Stream, n.Seq, len(body), length)
		}
		got, _, err := open(body, keys)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("open: got %+v, want %+v (error %v)", got, want, err)
		}
	}
}
