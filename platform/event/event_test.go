package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cityconnect/cityconnect/platform/event"
)

const schemas = "../../docs/schemas"

var id = uuid.MustParse("018f6f3e-7b1a-7c11-8a55-0a4f6f0c9b01")

// samples has one whole message per schema.
var samples = map[string]event.Message{
	"status-update.json": &event.StatusUpdate{Subject: subject(2), NewStatus: event.Resolved, Note: "New bulb", CategoryID: 2,
		PreviousMessageID: previous, PreviousStatusVersion: 1, Reply: true, VerdictUntil: 1768435200},
	"report-created.json": &event.ReportCreated{Subject: subject(1), CategoryID: 2, CategoryName: "Street lights and signals",
		ReporterName: "Ada", PrivacyLevel: event.Public},
	"vote-received.json": &event.VoteReceived{Subject: subject(3), VoterID: "u2", VoteType: event.Upvote, NewScore: new(int64(-1)), CategoryID: 2},
	"report-overdue.json": &event.ReportOverdue{Subject: subject(3), CategoryID: 2, CategoryName: "Street lights and signals",
		DueAt: 1767222000, Level: 1},
	"report-moderated.json": &event.ReportModerated{Subject: subject(5), CategoryID: 2, Action: event.Hidden, Hidden: true,
		RedactedNotes: []int64{2}, Note: "Names a neighbour"},
	"report-corrected.json": &event.ReportCorrected{Subject: subject(4), CategoryID: 2, CategoryName: "Street lights and signals",
		Note: "The other crossing", PlaceMoved: true, ByReporter: true, PreviousCategoryID: 3, PreviousLatitude: new(-6.8), PreviousLongitude: new(107.5)},
	"report-disputed.json":   &event.ReportDisputed{Subject: subject(4), CategoryID: 2, CategoryName: "Street lights and signals", Retracted: true},
	"report-commented.json":  &event.ReportCommented{Subject: subject(4), CategoryID: 2},
	"question-asked.json":    &event.QuestionAsked{Subject: subject(4), QuestionID: question, EndsOn: "2026-12-11"},
	"question-reminded.json": &event.QuestionReminded{Subject: subject(4), QuestionID: question, EndsOn: "2026-12-11"},
	"report-answered.json":   &event.ReportAnswered{Subject: subject(4), QuestionID: question},
	"question-expired.json":  &event.QuestionExpired{Subject: subject(4), QuestionID: question},
	"photo-ready.json":       &event.PhotoReady{Subject: subject(4), PhotoID: photo, CategoryID: 2},
	"photo-refused.json":     &event.PhotoRefused{Subject: subject(4), PhotoID: photo, Reason: event.PhotoDamaged},
	"photo-uploaded.json":    &event.PhotoUploaded{Subject: subject(3), PhotoID: photo},
	"guest-adopted.json":     &event.GuestAdopted{Subject: subject(1), Guest: "v2.k1.AAAA"},
	"firm-notice.json": &event.FirmNotice{Subject: subject(3), JobID: question, Kind: event.FirmAsked, Number: "ABCD-EFGH", CategoryName: "Street lights and signals",
		Address: "Jl. Braga 1", Text: "The third lamp", EndsOn: "2026-12-11", Photos: []uuid.UUID{photo}, Mailbox: "v2.k1.AAAA", Token: "v2.k1.AAAA"},
}

var (
	photo    = uuid.MustParse("018f6f3e-7b1a-7c11-8a55-0a4f6f0c9b02")
	previous = uuid.MustParse("018f6f3e-7b1a-7c11-8a55-0a4f6f0c9b03")
	question = uuid.MustParse("018f6f3e-7b1a-7c11-8a55-0a4f6f0c9b04")
)

func subject(version int64) event.Subject {
	return event.Subject{
		ReportID: id, ReportVersion: version, ReportTitle: "Dark lamp", ReporterID: "u1", Timestamp: 1767225600,
		Latitude: new(-6.9), Longitude: new(107.6), Asset: "lamps/L-7", Department: new("roads"), Private: true,
	}
}

func compile(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(file)
	if err != nil {
		t.Fatalf("compile %s: %v", file, err)
	}
	return schema
}

func fields(t *testing.T, m event.Message) map[string]any {
	t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// accepts asks the schema; it reads the body as the schema library needs it.
func accepts(t *testing.T, schema *jsonschema.Schema, body []byte) bool {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return false
	}
	return schema.Validate(value) == nil
}

func TestEveryKeyHasASchema(t *testing.T) {
	t.Parallel()
	for _, key := range event.AllKeys() {
		found := false
		for _, sample := range samples {
			found = found || sample.Key() == key
		}
		if !found {
			t.Errorf("platform/event/event_test.go: no sample of %s, with its schema in docs/schemas", key)
		}
	}
}

// The schema knows every field of the struct, and no other.
func TestSchemaAndCodeHaveTheSameFields(t *testing.T) {
	t.Parallel()
	for name, sample := range samples {
		schema := compile(t, filepath.Join(schemas, name))
		known := fields(t, sample)
		structFields := reflect.TypeFor[event.Subject]().NumField() + reflect.TypeOf(sample).Elem().NumField() - 1
		if len(known) != structFields {
			t.Fatalf("%s: the sample fills %d of %d fields", name, len(known), structFields)
		}
		for field := range known {
			if _, ok := schema.Properties[field]; !ok {
				t.Errorf("docs/schemas/%s has no property %s", name, field)
			}
		}
		for field := range schema.Properties {
			if _, ok := known[field]; !ok {
				t.Errorf("docs/schemas/%s has the property %s, which the message has not", name, field)
			}
		}
	}
}

// Whatever one field is changed to, schema and code agree on whether the
// message keeps the contract.
func TestSchemaAndCodeAgree(t *testing.T) {
	t.Parallel()
	values := []any{nil, "", "x", "anonymous", "public", "resolved", "downvote", id.String(), 0, -1, 1, 1.5, true, []any{}, map[string]any{}}
	for name, sample := range samples {
		schema := compile(t, filepath.Join(schemas, name))
		for field := range fields(t, sample) {
			for _, value := range values {
				changed := fields(t, sample)
				changed[field] = value
				compare(t, schema, sample.Key(), changed)
			}
			without := fields(t, sample)
			delete(without, field)
			compare(t, schema, sample.Key(), without)
		}
	}
}

func compare(t *testing.T, schema *jsonschema.Schema, key event.Key, message map[string]any) {
	t.Helper()
	body := marshal(t, message)
	_, err := event.Decode(key, body)
	if byCode, bySchema := err == nil, accepts(t, schema, body); byCode != bySchema {
		t.Errorf("%s: code accepts: %v (%v), schema accepts: %v\n%s", key, byCode, err, bySchema, body)
	}
	if fault, ok := errors.AsType[*event.FieldError](err); err != nil && (!ok || schema.Properties[fault.Field] == nil || fault.Must == "") {
		t.Errorf("%s: error %v names no field of the message\n%s", key, err, body)
	}
}

func TestDecodeKeepsEveryField(t *testing.T) {
	t.Parallel()
	for name, want := range samples {
		got, err := event.Decode(want.Key(), marshal(t, want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v (error %v), want %+v", name, got, err, want)
		}
	}
}

func TestDecodeIgnoresUnknownFields(t *testing.T) {
	t.Parallel()
	message := fields(t, samples["vote-received.json"])
	message["from_a_later_version"] = true
	if _, err := event.Decode(event.VoteReceivedKey, marshal(t, message)); err != nil {
		t.Errorf("Decode: %v; a newer writer must be readable", err)
	}
}

// An anonymous message that names its reporter must not pass, and the error,
// which reaches dead letters, must not name the reporter either.
func TestDecodeRefusesNamedAnonymous(t *testing.T) {
	t.Parallel()
	message := fields(t, samples["report-created.json"])
	message["privacy_level"] = "anonymous"
	message["reporter_id"], message["reporter_name"] = "secret-id", "secret-name"
	_, err := event.Decode(event.ReportCreatedKey, marshal(t, message))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("Decode: %v; want a refusal that names nobody", err)
	}
}

// FuzzDecode: whatever arrives, Decode gives a valid message or an error, and
// what it accepted it accepts again after a round trip.
func FuzzDecode(f *testing.F) {
	for _, sample := range samples {
		body, _ := json.Marshal(sample)
		f.Add(string(sample.Key()), body)
	}
	f.Add("report.created", []byte("null"))
	f.Fuzz(func(t *testing.T, key string, body []byte) {
		message, err := event.Decode(event.Key(key), body)
		if err != nil {
			return
		}
		again, err := event.Decode(message.Key(), marshal(t, message))
		if err != nil || !reflect.DeepEqual(again, message) {
			t.Errorf("round trip: got %+v (error %v), want %+v", again, err, message)
		}
	})
}
