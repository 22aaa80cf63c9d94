package main

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestSampleFitsTheAPI(t *testing.T) {
	t.Parallel()
	sample, err := loadSample()
	if err != nil || len(sample) != 21 {
		t.Fatalf("got %d requests, error %v; want 21", len(sample), err)
	}
	ids := map[string]int32{
		"Roads and potholes": 1, "Street lights and signals": 2, "Waste and illegal dumping": 3, "Graffiti": 4,
		"Parks and trees": 5, "Sidewalks": 7, "Traffic and parking": 8, "Other": 11,
	}
	closed := 0
	for _, r := range sample {
		in := r.report(ids, "public")
		if in.Title == "" || len([]rune(in.Title)) > maxTitle || strings.ContainsAny(in.Title, "\r\n") {
			t.Errorf("%s: title %q", r.Service, in.Title)
		}
		if in.CategoryID == 0 {
			t.Errorf("%s: no category", r.Service)
		}
		if in.CategoryID == 11 && r.Service != "Brain Monitor" && r.Service != "iPhone App Feedback" {
			t.Errorf("%s fell among the others", r.Service)
		}
		if (in.Latitude == nil) != (in.Longitude == nil) || in.Latitude != nil && (*in.Latitude < -6.604 || *in.Latitude > -6.444 || *in.Longitude < 106.777 || *in.Longitude > 106.934) {
			t.Errorf("%s: not a position in Bloomington", r.Service)
		}
		if r.Status == "closed" {
			closed++
		}
	}
	if closed == 0 {
		t.Error("nothing in the sample is closed, so the demo resolves nothing")
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	a, start := newAudit(), time.Now().Add(-time.Second)
	once := sight{"Ana", votedType, uuid.New(), 2}
	twice := sight{"Ben", votedType, uuid.New(), 2}
	never := sight{"Olga", createdType, uuid.New(), 1}
	a.arrive(once) // before it is expected
	for _, s := range []sight{once, twice, never} {
		a.expect(s, start)
	}
	a.arrive(twice)
	a.arrive(twice)
	a.arrive(sight{"Olga", createdType, uuid.New(), 1}) // somebody else's

	if took, ok := a.wait(once, nil); !ok || took < time.Second {
		t.Errorf("wait for what came: %v, %t", took, ok)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := a.wait(never, done.Done()); ok {
		t.Error("wait for what never came: it came")
	}
	r := a.result()
	if r.expected != 3 || r.once != 1 || r.doubled != 1 || r.lost != 1 || r.good() {
		t.Errorf("got %s, good: %t", r, r.good())
	}
	if !strings.HasPrefix(r.String(), "expected=3 once=1 lost=1 doubled=1 p50_ms=") {
		t.Errorf("the line reads %q", r)
	}
}

// Making pictures gives way to everything else on the machine, so how long it
// takes says nothing of how fast notifications are.
func TestAuditCountsPhotosApart(t *testing.T) {
	t.Parallel()
	a := newAudit()
	vote := sight{"Ana", votedType, uuid.New(), 2}
	photo := sight{"Ana", readyType, uuid.New(), 2}
	a.expect(vote, time.Now())
	a.expect(photo, time.Now().Add(-time.Minute))
	a.arrive(vote)
	a.arrive(photo)
	if r := a.result(); !r.good() || r.once != 2 || r.p99 >= time.Minute || r.photoMax < time.Minute {
		t.Errorf("got %s, photo after %v", r, r.photoMax)
	}
}

// The audit of photos finds what the demo's own have in them.
func TestBare(t *testing.T) {
	t.Parallel()
	photo := photoWithPlace(1)
	tagged, err := jpeg.DecodeConfig(bytes.NewReader(photo))
	if err != nil || tagged.Width != 1600 {
		t.Fatalf("the demo's photo: %+v, error %v", tagged, err)
	}
	var plain bytes.Buffer
	if err := jpeg.Encode(&plain, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	if err := bare(plain.Bytes()); err != nil {
		t.Errorf("without tags: %v", err)
	}
	for name, file := range map[string][]byte{
		"tags":            photo,
		"another file":    append(bytes.Clone(plain.Bytes()), "PK\x03\x04"...),
		"nothing":         nil,
		"no picture":      []byte("<svg/>"),
		"a comment":       append([]byte{0xFF, 0xD8, 0xFF, 0xFE, 0, 3, 'x'}, plain.Bytes()[2:]...),
		"its end is gone": plain.Bytes()[:plain.Len()-2],
	} {
		if bare(file) == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// A newcomer who forgot to start the stack reads how to do it.
func TestRunWithoutAStack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run(t.Context(), []string{"-gateway", "http://127.0.0.1:1", "-wait", "1ms"}, func(string) string { return "" }, &out)
	if err == nil || !strings.Contains(err.Error(), "make up") {
		t.Errorf("run: %v", err)
	}
}
