package event_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/cityconnect/cityconnect/platform/event"
)

// keep is what to do about a message that another release does not understand.
const keep = `
While replicas are upgraded, two releases run side by side, and messages wait in
queues, outbox rows and dead letters for longer. So a field may be added, and none
may go, be renamed, or change its type or whether it may be missing. Keep the field
and add another one beside it; see platform/event/testdata/README.md.`

// releases returns the folders of what earlier releases send and read.
func releases(t *testing.T) []string {
	t.Helper()
	folders, err := filepath.Glob("testdata/v*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no release in testdata (error %v)", err)
	}
	return folders
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// Messages of earlier releases are understood, with each of their fields.
func TestEarlierMessagesAreUnderstood(t *testing.T) {
	t.Parallel()
	for _, folder := range releases(t) {
		var sent struct {
			RecipientKey string `json:"recipient_key"`
			Messages     []struct {
				What       string
				RoutingKey event.Key `json:"routing_key"`
				Headers    map[string]string
				Recipient  string
				Body       json.RawMessage
			}
		}
		readJSON(t, filepath.Join(folder, "messages.json"), &sent)
		keys := keyring(t, sent.RecipientKey)
		for _, m := range sent.Messages {
			got, err := event.Decode(m.RoutingKey, m.Body)
			if err != nil {
				t.Errorf("%s: %s, %s: Decode: %v%s", folder, m.RoutingKey, m.What, err, keep)
				continue
			}
			var want map[string]any
			if err := json.Unmarshal(m.Body, &want); err != nil {
				t.Fatal(err)
			}
			for name, value := range want {
				if got := fields(t, got)[name]; value != nil && !reflect.DeepEqual(got, value) {
					t.Errorf("%s: %s, %s: %s is %v, was sent as %v%s", folder, m.RoutingKey, m.What, name, got, value, keep)
				}
			}
			for name := range m.Headers {
				if name != event.RecipientHeader && name != event.TraceHeader {
					t.Errorf("%s: the header %s is no longer read%s", folder, name, keep)
				}
			}
			if got, err := keys.Open(got.About().ReportID, m.Headers[event.RecipientHeader]); err != nil || got != m.Recipient {
				t.Errorf("%s: %s, %s: the recipient is %q (error %v), want %q%s", folder, m.RoutingKey, m.What, got, err, m.Recipient, keep)
			}
		}
	}
}

// Messages of today are accepted by the schemas of earlier releases, with and without
// optional fields. Unknown values are a matter of upgrades, not of fields: they come
// in the order of docs/upgrading.md.
func TestEarlierReleasesUnderstandMessages(t *testing.T) {
	t.Parallel()
	for _, folder := range releases(t) {
		for name, sample := range samples {
			if _, err := os.Stat(filepath.Join(folder, name)); os.IsNotExist(err) {
				continue // the whole type is newer, and has a queue of its own
			}
			earlier := compile(t, filepath.Join(folder, name))
			if body := marshal(t, sample); !accepts(t, earlier, body) {
				t.Errorf("%s/%s refuses a message of today: %s%s", folder, name, body, keep)
			}
			least := reflect.New(reflect.TypeOf(sample).Elem())
			least.Elem().Set(reflect.ValueOf(sample).Elem())
			for _, optional := range []string{"ReporterID", "ReporterName", "Note"} {
				if field := least.Elem().FieldByName(optional); field.IsValid() {
					field.SetZero()
				}
			}
			if body := marshal(t, least.Interface()); !accepts(t, earlier, body) {
				t.Errorf("%s/%s refuses a message of today: %s%s", folder, name, body, keep)
			}
		}
	}
}

// A schema only grows: every field of an earlier release is there, with its type
// and its values, and is asked for if it was.
func TestSchemasOnlyGrow(t *testing.T) {
	t.Parallel()
	type schema struct {
		Required   []string
		Properties map[string]struct {
			Type any
			Enum []any
		}
	}
	for _, folder := range releases(t) {
		for name := range samples {
			var earlier, now schema
			if _, err := os.Stat(filepath.Join(folder, name)); os.IsNotExist(err) {
				continue
			}
			readJSON(t, filepath.Join(folder, name), &earlier)
			readJSON(t, filepath.Join(schemas, name), &now)
			for field, was := range earlier.Properties {
				is, ok := now.Properties[field]
				if !ok {
					t.Errorf("docs/schemas/%s: %s of %s is gone, or has another name%s", name, field, folder, keep)
					continue
				}
				if !reflect.DeepEqual(is.Type, was.Type) {
					t.Errorf("docs/schemas/%s: %s is %v, was %v in %s%s", name, field, is.Type, was.Type, folder, keep)
				}
				for _, value := range was.Enum {
					if !slices.Contains(is.Enum, value) {
						t.Errorf("docs/schemas/%s: %s may no longer be %v, as in %s%s", name, field, value, folder, keep)
					}
				}
			}
			slices.Sort(earlier.Required)
			slices.Sort(now.Required)
			if !slices.Equal(earlier.Required, now.Required) {
				t.Errorf("docs/schemas/%s requires %v, and %s %v%s", name, now.Required, folder, earlier.Required, keep)
			}
		}
	}
}
