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
	"sync/atomic"
	"time"

	"github.com/cityconnect/cityconnect/platform/ssetest"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

const (
	// silence is when a connection counts as dead: the server writes at least
	// every 22 s, so two heartbeats were missed.
	silence = 45 * time.Second
	// defaultRetry is the wait between connections until the server says one.
	defaultRetry = 3 * time.Second
	// firstBackoff doubles with each attempt that fails, up to maxBackoff.
	firstBackoff, maxBackoff = 500 * time.Millisecond, 30 * time.Second
)

// ErrEnded says that the server wants no reconnection: it answered 204, or
// refused the token.
var ErrEnded = errors.New("the stream ended for good")

// A Stream follows an event stream as a browser's EventSource together with
// the page's module does: it reconnects where it was, waits as long as the
// server says, backs off with jitter while there is no server, and does not
// trust a connection that fell silent.
type Stream struct {
	Client *Client
	Path   string // such as /notifications/stream
	// LastID is where to begin; empty means from now on. Run moves it.
	LastID string
	// Handle is called with every event but heartbeats, one after the other.
	// It must not keep the event's Data.
	Handle func(ssetest.Event)
	// MaxWait caps the waits between connections. 0 means as long as the
	// server says.
	MaxWait time.Duration

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
		if wait.For(ctx, s.wait(retry, failures)) != nil {
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

	resp, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	s.connects.Add(1)

	p := ssetest.NewParser(&watchedReader{resp.Body, watchdog}, s.LastID)
	for {
		event, err := p.Next()
		s.LastID = p.LastID() // also without an event, as Chromium has it
		if err != nil {
			return cmp.Or(p.Retry(), defaultRetry), err
		}
		if event.Type != ssetest.Heartbeat {
			s.Handle(event)
		}
	}
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

func (s *Stream) open(ctx context.Context) (*http.Response, error) {
	path, header := s.Path, []string{"Accept", "text/event-stream", "Cache-Control", "no-store"}
	switch {
	case s.LastID == "":
	case s.connects.Load() == 0: // as a page begins, which can set no header
		path += "?last_event_id=" + url.QueryEscape(s.LastID)
	default:
		header = append(header, "Last-Event-ID", s.LastID)
	}
	resp, err := s.Client.send(ctx, http.MethodGet, path, http.NoBody, header...)
	if err != nil {
		return nil, err
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && mediaType == "text/event-stream" {
		return resp, nil
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNoContent, http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("%w: GET %s answered %s", ErrEnded, s.Path, resp.Status)
	}
	return nil, fmt.Errorf("GET %s answered %s with %q", s.Path, resp.Status, mediaType)
}
