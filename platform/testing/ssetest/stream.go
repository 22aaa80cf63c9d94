package ssetest

import (
	"context"
	"fmt"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/sse"
)

// A Stream is one connection to an event stream.
type Stream struct {
	*sse.Parser
	Status int
	Header http.Header
	close  func()
}

// Open connects to url from lastID on. header alternates names and values.
func Open(ctx context.Context, url, lastID string, header ...string) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	closer := func() {
		cancel()
		_ = resp.Body.Close() // the stream is given up
	}
	return &Stream{sse.NewParser(resp.Body, lastID), resp.StatusCode, resp.Header, closer}, nil
}

// Close ends the connection.
func (s *Stream) Close() { s.close() }
