package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/sse"
)

const (
	// silence is when a connection counts as dead: the server writes at least
	// every 22 s, so two heartbeats were missed.
	silence = 45 * time.Second
	// defaultRetry is the wait between connections until the server says one.
	defaultRetry = 3 * time.Second
	// immediately is the wait before a gap is closed.
	immediately = time.Nanosecond
	// maxRetryAfter is what a server may say that is not mistaken.
	maxRetryAfter = 10 * time.Minute
	// firstBackoff doubles with each attempt that fails, up to maxBackoff.
	firstBackoff, maxBackoff = 500 * time.Millisecond, 30 * time.Second
)

// ErrEnded says that another connection is of no use: the server answered 204, 400,
// 401, 403 or 404.
var ErrEnded = errors.New("the stream ended for good")

// errGap ends a connection of which a notification is missing.
var errGap = errors.New("a notification is missing")

// An Event is one event of a stream: its Type (ready, notification, reset or progress),
// its ID and its Data.
type Event = sse.Event

// A Stream follows an event stream: it reconnects where it was, waits as long as the
// server says, backs off with jitter while there is no server, and does not trust a
// connection that fell silent.
//
// The numbers of notifications have no gaps. Stream drops one that came before. For
// one that comes too early it connects again at the last one before it, and the server
// sends what is between; if it does not, Handle gets a reset with the reason “gap”.
type Stream struct {
	Client *Client
	Path   string // such as /notifications/stream
	// LastID is where to begin; empty means from now on. Run moves it. Inside of Handle
	// it is the event's: whoever stores it there resumes after that event.
	LastID string
	// Handle is called with every event but heartbeats, one after the other.
	// It must not keep the event's Data.
	Handle func(Event)
	// Raw takes the place of Handle for those who prove a server: it is called with what
	// comes, and nothing is dropped, or asked for again.
	Raw func(Event)
	// MaxWait caps the waits between connections. 0 means as long as the
	// server says.
	MaxWait time.Duration

	gapAt    string // where a gap was found; a second one at the same place stays
	connects atomic.Int64
}

// Connects returns how many connections the server has accepted so far.
func (s *Stream) Connects() int64 { return s.connects.Load() }

// Run follows the stream until ctx ends, when it returns nil, or until the
// server ends it for good, when it returns an error that wraps ErrEnded.
func (s *Stream) Run(ctx context.Context) error {
	retry, failures := defaultRetry, 0
	for {
		asked, err := s.connect(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the connection was closed by us
		case errors.Is(err, ErrEnded):
			return err
		case asked > 0:
			retry, failures = asked, 0
		default:
			failures++
		}
		if backoff.Sleep(ctx, s.wait(retry, failures)) != nil {
			return nil
		}
	}
}

// wait returns how long to wait after a connection that ended, or after so
// many attempts in a row that never were one.
func (s *Stream) wait(retry time.Duration, failures int) time.Duration {
	d := retry
	if failures > 0 {
		d = min(firstBackoff<<min(failures-1, 10), maxBackoff)
		d = time.Duration(float64(d) * (0.5 + rand.Float64())) // so that clients do not come back as one
	}
	if s.MaxWait > 0 {
		d = min(d, s.MaxWait)
	}
	return d
}

// connect holds one connection until it ends. It returns the wait that the
// server asked for, or 0 if there was no stream.
func (s *Stream) connect(ctx context.Context) (retry time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()

	resp, after, err := s.open(ctx)
	if err != nil {
		return after, err
	}
	defer func() { _ = resp.Body.Close() }()
	s.connects.Add(1)

	p := sse.NewParser(&watchedReader{resp.Body, watchdog}, s.LastID)
	for {
		event, err := p.Next()
		if err != nil {
			if s.Raw != nil {
				s.LastID = p.LastID() // also without an event, as Chromium has it
			}
			return cmp.Or(p.Retry(), defaultRetry), err
		}
		if event.Type == sse.Heartbeat {
			continue
		}
		if s.Raw != nil {
			s.LastID = p.LastID()
			s.Raw(event)
		} else if err := s.handle(event); err != nil {
			return immediately, err
		}
	}
}

// handle hands event on unless it came before, or comes too early.
func (s *Stream) handle(event Event) error {
	switch event.Type {
	case sse.Reset:
		s.LastID = event.ID
	case sse.Ready, sse.Notification:
		want := int64(0)
		if event.Type == sse.Notification {
			want = 1
		}
		steps, known := distance(s.LastID, event.ID)
		switch {
		case known && steps > want && s.gapAt != s.LastID:
			s.gapAt = s.LastID
			return errGap
		case known && steps > want:
			event = Event{Type: sse.Reset, ID: event.ID, Data: []byte(`{"reason":"gap"}`)}
		case known && steps < want && event.Type == sse.Notification:
			return nil
		case known && steps < want:
			event.ID = s.LastID
		}
		s.LastID = event.ID
	}
	s.Handle(event)
	return nil
}

// distance returns how many notifications there are from one id to another, in all of
// their streams together. It is not known where one is empty, or a stream began again.
func distance(from, to string) (steps int64, known bool) {
	begin, end := strings.Split(from, "."), strings.Split(to, ".")
	if len(begin) != len(end) || len(end) < 3 || len(end)%2 == 0 {
		return 0, false
	}
	for i := 1; i < len(end); i += 2 {
		m, errM := strconv.ParseInt(begin[i+1], 10, 64)
		n, errN := strconv.ParseInt(end[i+1], 10, 64)
		if begin[i] != end[i] || errM != nil || errN != nil {
			return 0, false
		}
		steps += n - m
	}
	return steps, true
}

// A watchedReader puts the watchdog off with everything that arrives.
type watchedReader struct {
	io.Reader
	watchdog *time.Timer
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.watchdog.Reset(silence)
	}
	return n, err
}

// open connects. Without a stream it returns how long the server wants to be left alone.
func (s *Stream) open(ctx context.Context) (resp *http.Response, after time.Duration, err error) {
	path, header := s.Path, []string{"Accept", "text/event-stream", "Cache-Control", "no-store"}
	switch {
	case s.LastID == "":
	case s.connects.Load() == 0: // as a page begins, which can set no header
		path += "?last_event_id=" + url.QueryEscape(s.LastID)
	default:
		header = append(header, "Last-Event-ID", s.LastID)
	}
	resp, err = s.Client.send(ctx, http.MethodGet, path, http.NoBody, header...)
	if err != nil {
		return nil, 0, err
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && mediaType == "text/event-stream" {
		return resp, 0, nil
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNoContent, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return nil, 0, fmt.Errorf("%w: GET %s answered %s", ErrEnded, s.Path, resp.Status)
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // without it, or with a date: 0
	after = min(time.Duration(max(seconds, 0))*time.Second, maxRetryAfter)
	after += time.Duration(float64(after) * rand.Float64() / 2) // all clients get the same seconds
	return nil, after, fmt.Errorf("GET %s answered %s with %q", s.Path, resp.Status, mediaType)
}
