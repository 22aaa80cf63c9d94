//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

const (
	residents = 16
	voters    = 200
	// actors is how many changes are on their way at most. While the stack is
	// down they all wait, and no further change begins.
	actors = 48
	// attemptTimeout is when a client gives up a request and repeats it.
	attemptTimeout = 8 * time.Second
	repeatAfter    = 300 * time.Millisecond
	// photosOfReport and photosOfDay are the service's limits: of a report, and of
	// a resident.
	photosOfReport, photosOfDay = 5, 20
	// photoShare of the changes are photos, but no more than photosPerSecond, each
	// of which is a process of its own.
	photoShare, photosPerSecond = 0.03, 1.2
)

// A town is the people who use the stack, and the account of what they did and
// were shown.
type town struct {
	residents []*person
	voters    []*client.Client
	official  *person
	operator  *client.Client
	lights    *lights
	screens   *city.Screens
	ledger    *city.Ledger // asked before mu is locked, never while it is

	mu      sync.Mutex
	reports []*report
	asking  map[*time.Time]struct{} // when the requests on their way were sent first
	photos  map[uuid.UUID]photo     // that were accepted, by their ids
	moment  time.Time               // the beginning of the fault
	first   time.Time               // when something that was asked for after it was first shown
	lateAt  time.Time               // when the last notification that took long was shown
	repeats int                     // requests that were sent again
	errors  []error                 // answers with status 500, which no fault excuses
}

// A person watches a live stream.
type person struct {
	*client.Client
	owner  int // as the ledger knows the person
	photos int // that were sent
}

// A report is one that was accepted.
type report struct {
	id     uuid.UUID
	owner  *person
	voters int        // how many of the town's voters have voted
	moving sync.Mutex // held during a change of status
	status string
	photos int // that were sent
	// accepted counts the changes that were answered with success, the filing
	// included. Each has made a version of the report.
	accepted int64
}

func newTown() *town {
	t := &town{screens: city.NewScreens(), asking: make(map[*time.Time]struct{}), photos: make(map[uuid.UUID]photo)}
	t.ledger = city.NewLedger(func(d city.Delivery) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if d.ToScreen > late {
			t.lateAt = time.Now()
		}
		if t.first.IsZero() && d.Planned.After(t.moment) {
			t.first = time.Now()
		}
	})
	return t
}

// enter signs everyone in and opens the screens.
func enter(ctx context.Context, gateway string) (*town, error) {
	t, stack := newTown(), client.New(gateway)
	users, err := city.SignIn(ctx, stack, "Resident", "resident", residents)
	if err != nil {
		return nil, err
	}
	if t.voters, err = city.SignIn(ctx, stack, "Voter", "resident", voters); err != nil {
		return nil, err
	}
	olga, err := stack.SignIn(ctx, "Olga", "official", "")
	if err != nil {
		return nil, fmt.Errorf("sign in the official: %w", err)
	}
	if t.operator, err = stack.SignIn(ctx, "Otto", "operator", ""); err != nil {
		return nil, fmt.Errorf("sign in the operator: %w", err)
	}
	t.official = &person{Client: olga, owner: city.Officials}
	for i, user := range users {
		t.residents = append(t.residents, &person{Client: user, owner: i})
	}
	for _, p := range append([]*person{t.official}, t.residents...) {
		_, err := t.screens.Open(ctx, p.Client, func(n client.Notification) {
			if string(n.Type) != string(event.PhotoRefusedKey) { // which does not change the report, and has no version of its own
				t.ledger.See(city.Sight{Report: n.ReportID, Version: n.ReportVersion, Owner: p.owner, Seen: time.Now()})
			}
		})
		if err != nil {
			return nil, errors.Join(err, t.screens.Close())
		}
	}
	return t, nil
}

// expect notes that a version of a report has to be shown to somebody.
func (t *town) expect(p *person, report uuid.UUID, version int64, asked time.Time) {
	t.ledger.Accept(city.Event{Report: report, Version: version, Owner: p.owner, Screens: 1, Planned: asked})
}

// makeChanges makes changes at the given rate until ctx ends, and returns when all that
// began are answered.
func (t *town) makeChanges(ctx context.Context, perSecond float64) {
	var busy sync.WaitGroup
	defer busy.Wait()
	room := make(chan struct{}, actors)
	ticker := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		select {
		case room <- struct{}{}:
			busy.Go(func() {
				defer func() { <-room }()
				t.change(context.WithoutCancel(ctx), min(photoShare, photosPerSecond/perSecond))
			})
		default:
		}
	}
}

// change makes one change, and repeats it until it is answered with success, as
// the page does. So much of the changes are photos.
func (t *town) change(ctx context.Context, photos float64) {
	t.mu.Lock()
	var r *report
	if n := len(t.reports); n > 0 {
		r = t.reports[max(0, n-1-rand.IntN(min(n, 40)))] // mostly what is new
	}
	t.mu.Unlock()
	switch dice := rand.Float64(); {
	case r == nil || dice < 0.15:
		t.file(ctx)
	case dice < 0.15+photos:
		t.addPhoto(ctx, r)
	case dice < 0.8:
		t.vote(ctx, r)
	default:
		t.move(ctx, r)
	}
}

func (t *town) file(ctx context.Context) {
	owner, key := t.residents[rand.IntN(len(t.residents))], uuid.NewString()
	in := client.NewReport{Title: "Street lamp is dark", Description: key, CategoryID: 2, PrivacyLevel: "anonymous"}
	if rand.IntN(2) == 0 {
		in.PrivacyLevel = "public"
	}
	asked := time.Now()
	var filed client.Report
	t.repeat(ctx, func(ctx context.Context) (err error) {
		filed, err = owner.CreateReport(ctx, in, "Idempotency-Key", key)
		return err
	})
	t.expect(t.official, filed.ID, 1, asked)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reports = append(t.reports, &report{id: filed.ID, owner: owner, status: "pending", accepted: 1})
}

// vote has a voter vote who has not voted on r. Repeating the same vote changes
// nothing, so that it can be repeated after an answer that was lost.
func (t *town) vote(ctx context.Context, r *report) {
	t.mu.Lock()
	if r.voters == len(t.voters) {
		t.mu.Unlock()
		return
	}
	voter := t.voters[r.voters]
	r.voters++
	t.mu.Unlock()
	asked := time.Now()
	var result client.VoteResult
	once := t.repeat(ctx, func(ctx context.Context) (err error) {
		result, err = voter.Vote(ctx, r.id, "upvote")
		return err
	})
	t.accept(r, asked, result.Version, once)
}

// addPhoto adds a photo to r, by its reporter or, beyond what a reporter may send in
// a day, by the official. One file in ten is not a picture. The upload's id is the
// client's, so that it can be repeated.
func (t *town) addPhoto(ctx context.Context, r *report) {
	t.mu.Lock()
	if r.photos == photosOfReport {
		t.mu.Unlock()
		return
	}
	r.photos++
	by := t.official
	if r.owner.photos < photosOfDay {
		r.owner.photos++
		by = r.owner
	}
	t.mu.Unlock()
	upload, file, sound := uuid.New(), picture, rand.IntN(10) != 0
	if !sound {
		file = []byte("BM is how bitmaps begin, which are not taken")
	}
	var id uuid.UUID
	t.repeat(ctx, func(ctx context.Context) (err error) {
		id, err = by.AddPhoto(ctx, r.id, upload, "A lamp", file)
		return err
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.photos[id] = photo{r, sound}
}

// A photo was accepted. One that is not sound has to be refused.
type photo struct {
	report *report
	sound  bool
}

// picture is a small one, so that the worker's share of the machine is small, too.
var picture = func() []byte {
	var file bytes.Buffer
	if err := jpeg.Encode(&file, image.NewGray(image.Rect(0, 0, 320, 240)), nil); err != nil {
		panic(err) // a buffer takes everything
	}
	return file.Bytes()
}()

// move changes r's status back and forth. One change at a time: the same status
// again changes nothing, so that it can be repeated.
func (t *town) move(ctx context.Context, r *report) {
	if !r.moving.TryLock() {
		return
	}
	defer r.moving.Unlock()
	next := map[string]string{"pending": "in_progress", "in_progress": "pending"}[r.status]
	asked := time.Now()
	var moved client.Report
	once := t.repeat(ctx, func(ctx context.Context) (err error) {
		moved, err = t.official.SetStatus(ctx, r.id, next, "Seen")
		return err
	})
	r.status = next
	t.accept(r, asked, moved.Version, once)
}

// accept counts a change. Its version is certain only if the first request was
// answered: the answer to a repetition may tell a later one.
func (t *town) accept(r *report, asked time.Time, version int64, once bool) {
	t.mu.Lock()
	r.accepted++
	t.mu.Unlock()
	if once {
		t.expect(r.owner, r.id, version, asked)
	}
}

// repeat sends a request until it is answered with success, and reports whether
// the first one was.
func (t *town) repeat(ctx context.Context, request func(context.Context) error) (once bool) {
	asked := time.Now()
	t.mu.Lock()
	t.asking[&asked] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.asking, &asked)
	}()
	for attempt := 0; ; attempt++ {
		attemptCtx, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := request(attemptCtx)
		cancel()
		if err == nil {
			return attempt == 0
		}
		t.mu.Lock()
		t.repeats++
		if client.StatusOf(err) == http.StatusInternalServerError {
			t.errors = append(t.errors, err)
		}
		t.mu.Unlock()
		_ = wait.For(ctx, repeatAfter+rand.N(repeatAfter)) // ctx does not end
	}
}
