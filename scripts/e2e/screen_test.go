package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// The types of notification.
const (
	created = "report.created"
	voted   = "report.vote.received"
	moved   = "report.status.updated"
)

// A sight is one notification as a test expects it.
type sight struct {
	typ     string
	report  uuid.UUID
	version int64
}

// A screen is a user's open stream and what it has shown.
type screen struct {
	t      *testing.T
	user   *client.Client
	stream *client.Stream
	ledger ssetest.Ledger

	mu      sync.Mutex
	shown   []sight
	changed chan struct{} // closed and replaced with every event
}

// watch opens user's stream and returns once it is ready. It reconnects
// quickly; it ends with the test.
func watch(t *testing.T, user *client.Client) *screen {
	t.Helper()
	s := &screen{t: t, user: user, changed: make(chan struct{})}
	ready := make(chan struct{})
	var once sync.Once
	s.stream = &client.Stream{
		Client: user, Path: "/notifications/stream", MaxWait: 200 * time.Millisecond,
		Raw: func(e sse.Event) {
			s.show(e)
			once.Do(func() { close(ready) })
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.stream.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stream: %v", err)
		}
	})
	select {
	case <-ready:
	case <-time.After(eventually.Patience):
		t.Fatal("the stream does not get ready")
	}
	return s
}

func (s *screen) show(e sse.Event) {
	s.ledger.Observe(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Type == sse.Notification {
		var n client.Notification
		if err := json.Unmarshal(e.Data, &n); err != nil {
			s.t.Errorf("notification %s: %v", e.Data, err)
		}
		s.shown = append(s.shown, sight{string(n.Type), n.ReportID, n.ReportVersion})
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// count returns how many notifications were shown, and a channel that closes
// with the next event.
func (s *screen) count() (n int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shown), s.changed
}

// await returns when at least n notifications were shown.
func (s *screen) await(n int) {
	s.t.Helper()
	late := time.After(eventually.Patience)
	for {
		got, changed := s.count()
		if got >= n {
			return
		}
		select {
		case <-changed:
		case <-late:
			s.t.Fatalf("%d notifications shown, want %d", got, n)
		}
	}
}

// check waits for want and proves that each was shown once and nothing else:
// on the screen, in the numbers of the stream, and in the list.
func (s *screen) check(want []sight) {
	s.t.Helper()
	s.await(len(want))
	s.mu.Lock()
	shown := slices.Clone(s.shown)
	s.mu.Unlock()
	compare(s.t, "shown", shown, want)
	compare(s.t, "listed", s.listed(), want)
	if got, want := s.ledger.Count(), (ssetest.Count{Received: int64(len(want))}); got != want {
		s.t.Errorf("the stream's numbers: got %+v, want %+v", got, want)
	}
}

// listed returns what GET /notifications has.
func (s *screen) listed() []sight {
	s.t.Helper()
	var all []sight
	for cursor := ""; ; {
		page, err := s.user.Notifications(s.t.Context(), cursor, 100)
		if err != nil {
			s.t.Fatalf("list notifications: %v", err)
		}
		for _, n := range page.Notifications {
			all = append(all, sight{string(n.Type), n.ReportID, n.ReportVersion})
		}
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

// compare reports what is missing from got and what is in it too often.
func compare(t *testing.T, how string, got, want []sight) {
	t.Helper()
	times := make(map[sight]int)
	for _, s := range want {
		times[s]--
	}
	for _, s := range got {
		times[s]++
	}
	for s, n := range times {
		if n != 0 {
			t.Errorf("%s: %v %+d times (%d shown, %d wanted)", how, s, n, len(got), len(want))
		}
	}
}

// String returns s for messages of failures.
func (s sight) String() string { return fmt.Sprintf("%s of %s v%d", s.typ, s.report, s.version) }
