package webhook_test

import (
	"encoding/json"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
)

// Endpoints are sent what the OpenAPI document says under webhooks: every type of
// event is there, and no payload has a field that is not.
func TestPayloadsFitTheDocument(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile("../../../docs/openapi/notification-service.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatalf("the document is not valid: %v", err)
	}
	events := map[string]webhook.Event{}
	subject := event.Subject{ReportID: uuid.New(), ReportVersion: 3, ReportTitle: "Pothole", ReporterID: "ann", Timestamp: 1_795_320_000, Latitude: new(-6.9), Longitude: new(107.6)}
	for _, m := range []event.Message{
		&event.ReportCreated{Subject: subject, CategoryID: 2, CategoryName: "Roads", ReporterName: "Ann", PrivacyLevel: event.Public},
		&event.StatusUpdate{Subject: subject, NewStatus: event.Resolved, Note: "Done.", CategoryID: 2},
		&event.VoteReceived{Subject: subject, VoterID: "ben", VoteType: event.Upvote, NewScore: new(int64(7)), CategoryID: 2},
		&event.ReportModerated{Subject: subject, CategoryID: 2, Action: event.Redacted},
		&event.ReportCommented{Subject: subject, CategoryID: 2},
		&event.ReportOverdue{Subject: subject, CategoryID: 2, CategoryName: "Lights", DueAt: 1767222000, Level: 1},
		&event.PhotoReady{Subject: subject, PhotoID: uuid.New(), CategoryID: 2},
	} {
		if events[string(m.Key())], err = webhook.EventOf("m1", m); err != nil {
			t.Fatal(err)
		}
	}
	if events[webhook.TestType], err = webhook.NewTest(); err != nil {
		t.Fatal(err)
	}
	for _, key := range webhook.Types() {
		if _, ok := events[string(key)]; !ok {
			t.Errorf("this test has no %s", key)
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
