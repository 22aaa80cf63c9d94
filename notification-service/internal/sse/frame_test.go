package sse

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/uuid"
	other "github.com/tmaxmax/go-sse"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/sse"
)

// FuzzFrame holds that whatever a title contains, the parser of another
// implementation gives back the same JSON, and the event after it is whole.
func FuzzFrame(f *testing.F) {
	for _, title := range []string{
		"Pothole", "", "two\nlines", "lone\rCR", "both\r\n", "\x00NUL", "\ufeffBOM", "🕳️ emoji", "\u2028\u2029",
		"data: x\n\nevent: fake\n\n", `"quoted\"`, "\xff\xfe not UTF-8", strings.Repeat("x", 64<<10),
	} {
		f.Add(title, int64(1), false)
		f.Add(title, int64(0), true)
	}
	f.Fuzz(func(t *testing.T, title string, score int64, laidOut bool) {
		data, err := json.Marshal(notification.Data{
			Type: event.VoteReceivedKey, ReportID: uuid.New(), ReportTitle: title, Score: &score})
		if err != nil {
			t.Fatal(err)
		}
		want := data
		if laidOut { // as a writer might who likes it readable
			var b bytes.Buffer
			if err := json.Indent(&b, data, "\r\n", "\t"); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		n := notification.Notification{Epoch: "abc", Seq: 7, ID: uuid.New(), Data: data, CreatedAt: time.Now()}
		wire := append([]byte{}, notificationFrame(n, time.Time{}).bytes...)
		wire = append(wire, heartbeat.bytes...)
		check(t, wire, n, want)
	})
}

// check reads wire with both parsers.
func check(t *testing.T, wire []byte, n notification.Notification, want []byte) {
	t.Helper()
	type event struct{ kind, id, data string }
	var got []event
	for e, err := range other.Read(bytes.NewReader(wire), &other.ReadConfig{MaxEventSize: 1 << 20}) {
		if err != nil {
			t.Fatalf("go-sse: %v", err)
		}
		got = append(got, event{e.Type, e.LastEventID, e.Data})
	}
	p := sse.NewParser(bytes.NewReader(wire), "")
	for i, e := range got {
		own, err := p.Next()
		if read := (event{own.Type, own.ID, string(own.Data)}); err != nil || read != e {
			t.Errorf("event %d: go-sse reads %q, we read %q (error %v)", i, e, read, err)
		}
	}
	if len(got) != 2 || got[0].kind != "notification" || got[0].id != "v1.abc.7" || got[1].kind != "hb" {
		t.Fatalf("go-sse reads %q, want a notification and a heartbeat", got)
	}
	compareJSON(t, got[0].data, n, want)
}

func compareJSON(t *testing.T, text string, n notification.Notification, want []byte) {
	t.Helper()
	var have, expected map[string]any
	if err := json.Unmarshal([]byte(text), &have); err != nil {
		t.Fatalf("data %q: %v", text, err)
	}
	if err := json.Unmarshal(want, &expected); err != nil {
		t.Fatal(err)
	}
	expected["id"] = n.ID.String()
	expected["created_at"] = n.CreatedAt.UTC().Format(time.RFC3339Nano)
	expected["read"] = false
	if !reflect.DeepEqual(have, expected) {
		t.Errorf("data %v, want %v", have, expected)
	}
}

// The ids of two streams fit into what browsers send without asking.
func TestTwoPositions(t *testing.T) {
	t.Parallel()
	f := notificationFrame(notification.Notification{Epoch: "abc", Seq: 8, Data: []byte(`{}`)}, time.Time{})
	c := &client{}
	c.follow(&topic{})
	c.follow(&topic{})
	c.startAt(notification.Cursor{{Epoch: "own", Seq: 3}, {Epoch: "abc", Seq: 7}})
	wire := c.render(nil, queuedFrame{f, c.second})
	e, err := sse.NewParser(bytes.NewReader(wire), "").Next()
	if err != nil || e.ID != "v1.own.3.abc.8" {
		t.Errorf("id %q (error %v), want v1.own.3.abc.8", e.ID, err)
	}
}

// A stream that waits costs its client and, of a reader's own, its topic: one more
// field is one more size class for each of them.
func TestIdleStreamIsSmall(t *testing.T) {
	t.Parallel()
	for name, size := range map[string][2]uintptr{
		"client": {unsafe.Sizeof(client{}), 176},
		"topic":  {unsafe.Sizeof(topic{}), 144},
	} {
		if size[0] > size[1] {
			t.Errorf("a %s has %d bytes, want at most %d", name, size[0], size[1])
		}
	}
}
