package broadcast

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
)

// While replicas are upgraded, those of two releases announce to each other. What
// an earlier release sent is read with each of its fields, and what is sent today
// has them all, under their names and with their types.
func TestReleasesUnderstandEachOther(t *testing.T) {
	t.Parallel()
	const keep = "\na field may be added to an announcement, and none may go, be renamed or change its type"
	keys, err := event.ParseKeyring("k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/v*/announcement.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no release in testdata (error %v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		a, compare, err := open(text, keys)
		if err != nil {
			t.Fatalf("%s: open: %v%s", file, err, keep)
		}
		n := a.batch.Notifications[0]
		if !compare || n.Stream != notification.UserStream("user-1") || n.Epoch != "0c0ffee0" || n.Seq != 41 {
			t.Errorf("%s: compare %t, notification %d of %s in epoch %s%s", file, compare, n.Seq, n.Stream, n.Epoch, keep)
		}
		again := seal(a, keys)
		again.Compare = compare
		today, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		var was, is any
		if err := json.Unmarshal(text, &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(today, &is); err != nil {
			t.Fatal(err)
		}
		compareFields(t, file, was, is, keep)
	}
}

// compareFields fails the test for each value in was that is not in is. What is
// sealed differs each time.
func compareFields(t *testing.T, at string, was, is any, keep string) {
	t.Helper()
	switch was := was.(type) {
	case map[string]any:
		is, _ := is.(map[string]any)
		for name, value := range was {
			if name != "to" {
				compareFields(t, at+" "+name, value, is[name], keep)
			}
		}
	case []any:
		is, _ := is.([]any)
		for i, value := range was {
			if i < len(is) {
				compareFields(t, at, value, is[i], keep)
			} else {
				t.Errorf("%s: %d values, want %d%s", at, len(is), len(was), keep)
			}
		}
	default:
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%s: sent as %v, was sent as %v%s", at, is, was, keep)
		}
	}
}
