//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/ssetest"
	"github.com/cityconnect/cityconnect/scripts/internal/client"
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
	city      *client.Client
	residents []*person
	voters    []*client.Client
	official  *person
	screens   sync.WaitGroup
	ended     chan error // a screen whose stream ended for good

	mu      sync.Mutex
	reports []*report
	asking  map[*time.Time]struct{} // when the requests on their way were sent first
	waiting map[shown]time.Time     // when the changes were asked for that are not shown yet
	seen    map[shown]int
	photos  map[uuid.UUID]photo // that were accepted, by their ids
	moment  time.Time           // the beginning of the fault
	first   time.Time           // when something that was asked for after it was first shown
	lateAt  time.Time           // when the last notification that took long was shown
	repeats int                 // requests that were sent again
	errors  []error             // answers with status 500, which no fault excuses
}

// A person watches a live stream.
type person struct {
	*client.Client
	ledger ssetest.Ledger
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

// shown is a version of a report on somebody's screen.
type shown struct {
	person  *person
	report  uuid.UUID
	version int64
}

// enter signs everyone in and opens the screens, which end with ctx.
func enter(ctx context.Context, gateway string) (*town, error) {
	t := &town{
		city: client.New(gateway), ended: make(chan error, residents+1),
		asking: make(map[*time.Time]struct{}), waiting: make(map[shown]time.Time), seen: make(map[shown]int),
		photos: make(map[uuid.UUID]photo),
	}
	signIn := func(name, role string) (*client.Client, error) {
		user, err := t.city.SignIn(ctx, name, role, "")
		if err != nil {
			return nil, fmt.Errorf("sign in %s: %w", name, err)
		}
		return user, nil
	}
	for i := range residents {
		user, err := signIn(fmt.Sprint("Resident ", i), "resident")
		if err != nil {
			return nil, err
		}
		t.residents = append(t.residents, &person{Client: user})
	}
	for i := range voters {
		user, err := signIn(fmt.Sprint("Voter ", i), "resident")
		if err != nil {
			return nil, err
		}
		t.voters = append(t.voters, user)
	}
	user, err := signIn("Olga", "official")
	if err != nil {
		return nil, err
	}
	t.official = &person{Client: user}
	for _, p := range append([]*person{t.official}, t.residents...) {
		if err := t.watch(ctx, p); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// watch opens p's stream and returns once it is ready.
func (t *town) watch(ctx context.Context, p *person) error {
	ready := make(chan struct{})
	var once sync.Once
	s := &client.Stream{Client: p.Client, Path: "/notifications/stream", Handle: func(e ssetest.Event) {
		p.ledger.Observe(e)
		once.Do(func() { close(ready) })
		if e.Type != ssetest.Notification {
			return
		}
		var n client.Notification
		if err := json.Unmarshal(e.Data, &n); err != nil {
			t.ended <- fmt.Errorf("a notification is not JSON: %w", err)
			return
		}
		if n.Type != string(event.PhotoRefusedKey) { // which does not change the report, and has no version of its own
			t.show(shown{p, n.ReportID, n.ReportVersion})
		}
	}}
	t.screens.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.ended <- fmt.Errorf("a screen went dark: %w", err)
		}
	})
	select {
	case <-ready:
		return nil
	case err := <-t.ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *town) show(s shown) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[s]++
	if asked, ok := t.waiting[s]; ok {
		delete(t.waiting, s)
		t.shownLocked(asked, now)
	}
}

func (t *town) shownLocked(asked, now time.Time) {
	if now.Sub(asked) > late {
		t.lateAt = now
	}
	if t.first.IsZero() && asked.After(t.moment) {
		t.first = now
	}
}

// expect notes that s, whose version is known for certain, has to be shown. It may
// have been already: a notification can overtake the answer to its request.
func (t *town) expect(s shown, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[s] > 0 {
		t.shownLocked(asked, time.Now())
		return
	}
	t.waiting[s] = asked
}

// act makes changes at the given rate until ctx ends, and returns when all that
// began are answered.
func (t *town) act(ctx context.Context, perSecond float64) {
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
	t.expect(shown{t.official, filed.ID, 1}, asked)
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
		t.expect(shown{r.owner, r.id, version}, asked)
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
		_ = sleep(ctx, repeatAfter+rand.N(repeatAfter)) // ctx does not end
	}
}
