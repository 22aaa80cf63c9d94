package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
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

// Mails and the events of other systems count like screens, and their times for
// themselves. Events of other people on the same stack do not count.
func TestAudit(t *testing.T) {
	t.Parallel()
	a, start := newAudit(), time.Now().Add(-time.Second)
	const ana = castScreens
	vote, filing := uuid.New(), uuid.New()
	see := func(report uuid.UUID, screen int, typ string) {
		a.See(city.Sight{Report: report, Version: 1, Screen: screen, Type: typ, Seen: time.Now()})
	}
	see(vote, ana, "") // before it is expected
	a.Accept(city.Event{Report: vote, Version: 1, Screens: 1<<ana | 1<<receiverScreen | 1<<mailboxScreen, Planned: start})
	a.Accept(city.Event{Report: filing, Version: 1, Screens: 1 << ana, Planned: start})
	see(vote, receiverScreen, "")
	see(vote, receiverScreen, "")
	see(vote, mailboxScreen, digestMail)
	see(uuid.New(), ana, "") // somebody else's
	r := a.result()
	if r.Expected != 4 || r.Once != 2 || r.Doubled != 1 || r.Lost != 1 || r.digests != 1 || r.p50 < time.Second || r.good() {
		t.Errorf("got %s, good: %t", r, r.good())
	}
	if !strings.HasPrefix(r.String(), "expected=4 once=2 lost=1 doubled=1 p50_ms=") {
		t.Errorf("the line reads %q", r)
	}
}

// Making pictures gives way to everything else on the machine, so how long it
// takes says nothing of how fast notifications are.
func TestAuditCountsPhotosApart(t *testing.T) {
	t.Parallel()
	a := newAudit()
	for typ, asked := range map[event.Key]time.Time{event.VoteReceivedKey: time.Now(), event.PhotoReadyKey: time.Now().Add(-time.Minute)} {
		report := uuid.New()
		a.Accept(city.Event{Report: report, Version: 1, Screens: 1 << castScreens, Planned: asked})
		a.See(city.Sight{Report: report, Version: 1, Screen: castScreens, Type: string(typ), Seen: time.Now()})
	}
	if r := a.result(); !r.good() || r.Once != 2 || r.p99 >= time.Minute || r.photoMax < time.Minute {
		t.Errorf("got %s, photo after %v", r, r.photoMax)
	}
}

// The audit of photos finds what the demo's own have in them.
func TestBare(t *testing.T) {
	t.Parallel()
	tagged, err := jpeg.DecodeConfig(bytes.NewReader(lamp))
	if err != nil || tagged.Width != 1600 || !bytes.Contains(lamp, []byte(camera)) {
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
		"tags":            lamp,
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

// The stack's address may end with a slash, and only a city without guests may leave them out.
func TestEnterAsGuest(t *testing.T) {
	t.Parallel()
	refusal := ""
	stack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/guests" && refusal == "" {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "token"})
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"sub":"guest"}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"status":404,"type":"/docs/problems.html#%s"}`, cmp.Or(refusal, "not-found"))
	}))
	defer stack.Close()
	for _, address := range []string{stack.URL, stack.URL + "/"} {
		guest, err := enterAsGuest(t.Context(), client.New(address), address)
		if err != nil || guest.ID != "guest" {
			t.Errorf("at %s: error %v", address, err)
		}
	}
	for name, want := range map[string]bool{"no-guests": true, "guests-closed": true, "not-found": false} {
		refusal = name
		_, err := enterAsGuest(t.Context(), client.New(stack.URL), stack.URL)
		if problem, ok := errors.AsType[*client.Error](err); !ok || takesNoGuests(problem) != want {
			t.Errorf("%s leaves the guests out: %t, must be %t (error: %v)", name, !want, want, err)
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
