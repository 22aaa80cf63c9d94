package webhook_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
)

const openapi = "docs/openapi/notification-service.yaml"

// Endpoints are sent what the OpenAPI document says under webhooks: every type of
// event is there, and no payload has a field that is not.
func TestPayloadsFitTheDocument(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(read(t, openapi))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	events := samplesOf(t)
	for _, key := range webhook.Types() {
		if _, ok := events[string(key)]; !ok {
			t.Errorf("samplesOf has no %s", key)
		}
	}
	for typ := range doc.Webhooks {
		if _, ok := events[typ]; !ok {
			t.Errorf("the document has %s, which is never sent", typ)
		}
	}
	for typ, e := range events {
		item := doc.Webhooks[typ]
		if item == nil {
			t.Errorf("the document has no webhook %s", typ)
			continue
		}
		schema := item.Post.RequestBody.Value.Content["application/json"].Schema.Value
		schema.AdditionalProperties = openapi3.BoolSchema{Has: new(false)}
		schema.Properties["data"].Value.AdditionalProperties = openapi3.BoolSchema{Has: new(false)}
		var body any
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		if err := schema.VisitJSON(body, openapi3.EnableJSONSchema2020(), openapi3.MultiErrors()); err != nil {
			t.Errorf("%s breaks the document: %v\n%s", typ, err, e.Body)
		}
	}
}

// samplesOf returns an event of each type.
func samplesOf(t *testing.T) map[string]webhook.Event {
	t.Helper()
	events := map[string]webhook.Event{}
	subject := event.Subject{ReportID: uuid.New(), ReportVersion: 3, ReportTitle: "Pothole", ReporterID: "ann", Timestamp: 1_795_320_000, Latitude: new(-6.9), Longitude: new(107.6)}
	for _, m := range []event.Message{
		&event.ReportCreated{Subject: subject, CategoryID: 2, CategoryName: "Roads", ReporterName: "Ann", PrivacyLevel: event.Public},
		&event.StatusUpdate{Subject: subject, NewStatus: event.Resolved, Note: "Done.", CategoryID: 2},
		&event.VoteReceived{Subject: subject, VoterID: "ben", VoteType: event.Upvote, NewScore: new(int64(7)), CategoryID: 2},
		&event.ReportModerated{Subject: subject, CategoryID: 2, Action: event.Redacted},
		&event.ReportCorrected{Subject: subject, CategoryID: 2, CategoryName: "Roads", PreviousCategoryID: 3, PlaceMoved: true,
			PreviousLatitude: new(-6.8), PreviousLongitude: new(107.5), Note: "The other crossing."},
		&event.ReportDisputed{Subject: subject, CategoryID: 2, CategoryName: "Roads", Retracted: true},
		&event.ReportCommented{Subject: subject, CategoryID: 2},
		&event.ReportOverdue{Subject: subject, CategoryID: 2, CategoryName: "Lights", DueAt: 1767222000, Level: 1},
		&event.PhotoReady{Subject: subject, PhotoID: uuid.New(), CategoryID: 2},
	} {
		e, err := webhook.EventOf("m1", m)
		if err != nil {
			t.Fatal(err)
		}
		events[e.Type] = e
	}
	e, err := webhook.NewTest()
	if err != nil {
		t.Fatal(err)
	}
	events[e.Type] = e
	return events
}

// The manual has a row for each type of event, which names every field that the event
// has besides those of its report. The console offers each type, and the OpenAPI
// document allows endpoints to ask for it.
func TestTypesAreKnownEverywhere(t *testing.T) {
	t.Parallel()
	const (
		manual  = "docs/webhooks.md"
		console = "notification-service/internal/web/app/src/screens/ops/webhooks/names.ts"
	)
	doc, err := openapi3.NewLoader().LoadFromData(read(t, openapi))
	if err != nil {
		t.Fatal(err)
	}
	ofReport := make(map[string]bool)
	for field := range reflect.TypeFor[webhook.Report]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		ofReport[name] = true
	}
	events := samplesOf(t)
	for _, typ := range slices.Sorted(maps.Keys(events)) {
		if !strings.Contains(string(read(t, console)), "'"+typ+"'") {
			t.Errorf("%s: no %s", console, typ)
		}
		if !slices.Contains(doc.Components.Schemas["WebhookEventType"].Value.Enum, any(typ)) {
			t.Errorf("%s: WebhookEventType does not allow %s", openapi, typ)
		}
		_, row, found := strings.Cut(string(read(t, manual)), "\n| `"+typ+"` |")
		if !found {
			t.Errorf("%s: no row for %s", manual, typ)
			continue
		}
		row, _, _ = strings.Cut(row, "\n")
		var body struct{ Data map[string]any }
		if err := json.Unmarshal(events[typ].Body, &body); err != nil {
			t.Fatal(err)
		}
		for name := range body.Data {
			if !ofReport[name] && !strings.Contains(row, "`"+name+"`") {
				t.Errorf("%s: the row for %s does not name %s", manual, typ, name)
			}
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../..", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
