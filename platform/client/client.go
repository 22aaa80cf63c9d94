// Package client speaks CityConnect's public API: the REST of both services
// through their gateway, and the live streams. The demo, the end-to-end tests
// and the load test are built on it.
//
// A [Client] has methods for what most clients do; [Client.Do] makes any request, with
// the types of reportapi and notificationapi, which are generated from the OpenAPI
// documents. A [Stream] hands on each notification once and in order, whatever happens
// to its connections.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

// requestTimeout ends a request that is never answered, streams excepted. It is
// far above what a busy machine needs.
const requestTimeout = 2 * time.Minute

// How long Insist asks, and how long it waits in between.
const (
	insistFor   = time.Minute
	insistEvery = 2 * time.Second
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// A Client makes requests in the name of one user, or of nobody.
type Client struct {
	base  string // without a slash at its end
	http  *http.Client
	token string
	// ID is the user's id, empty for nobody.
	ID string
}

// New returns an anonymous client of the stack whose gateway is at base, such
// as http://127.0.0.1:8080.
func New(base string) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() // documented to be one
	transport.MaxIdleConnsPerHost = 256                          // two would make a load test measure handshakes
	return &Client{base: strings.TrimRight(base, "/"), http: &http.Client{Transport: transport}}
}

// Use makes requests by transport, as through a proxy of one's own. It comes before the
// first request.
func (c *Client) Use(transport http.RoundTripper) { c.http.Transport = transport }

// As returns a client that makes its requests with token, over the same
// connections.
func (c *Client) As(id, token string) *Client {
	other := *c
	other.ID, other.token = id, token
	return &other
}

// Token returns the bearer token of c.
func (c *Client) Token() string { return c.token }

// CloseIdle closes the connections that no request uses.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// An Error is an answer that is none of 2xx: problem details.
type Error struct {
	Status int    `json:"status"`
	Type   string `json:"type"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Pointer string `json:"pointer"`
		Detail  string `json:"detail"`
	} `json:"errors"`
	TraceID string `json:"trace_id"`
}

// Error returns the problem in one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, e.Title)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	for _, fault := range e.Errors {
		text += "; " + fault.Pointer + ": " + fault.Detail
	}
	return text
}

// Name returns the end of the problem's type, such as "invalid-input".
func (e *Error) Name() string { return e.Type[strings.LastIndexByte(e.Type, '#')+1:] }

// StatusOf returns the status of the answer that err is about, or 0.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

// Do sends in as JSON, unless it is nil, and reads the answer into out,
// unless that is nil. header alternates names and values.
func (c *Client) Do(ctx context.Context, method, path string, in, out any, header ...string) error {
	var body io.Reader = http.NoBody
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(data)
		header = append([]string{"Content-Type", "application/json"}, header...)
	}
	answer, err := c.exchange(ctx, method, path, body, header...)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: decode answer: %w", method, path, err)
	}
	return nil
}

// SendForm sends a form in the name of nobody.
func (c *Client) SendForm(ctx context.Context, path string, form url.Values) error {
	_, err := c.As("", "").exchange(ctx, http.MethodPost, path, strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded")
	return err
}

// Insist is Do that asks again, for a minute, while the answer is 503: a part of
// the system is away or too busy, and nothing was done.
func (c *Client) Insist(ctx context.Context, method, path string, in, out any, header ...string) error {
	for began := time.Now(); ; {
		err := c.Do(ctx, method, path, in, out, header...)
		if StatusOf(err) != http.StatusServiceUnavailable || time.Since(began) > insistFor {
			return err
		}
		if backoff.Sleep(ctx, insistEvery) != nil {
			return err
		}
	}
}

// exchange sends body as it is, and returns the answer if it is one of 2xx.
func (c *Client) exchange(ctx context.Context, method, path string, body io.Reader, header ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := c.send(ctx, method, path, body, header...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s %s: read answer: %w", method, path, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %w", method, path, problem(resp.StatusCode, answer))
	}
	return answer, nil
}

func (c *Client) send(ctx context.Context, method, path string, body io.Reader, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if method == http.MethodPut || method == http.MethodDelete || strings.HasSuffix(path, "/vote") || path == "/dev/token" {
		// net/http may repeat a request that has its effect once, however often it
		// is sent, if the server has just closed the kept connection. This key, which
		// is not sent, allows that (http.Transport).
		req.Header["Idempotency-Key"] = nil
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return c.http.Do(req) // its error names the method and the address
}

// problem reads problem details; an answer of a gateway is often none.
func problem(status int, answer []byte) *Error {
	e := &Error{}
	if json.Unmarshal(answer, e) != nil || e.Title == "" {
		e = &Error{Title: http.StatusText(status)}
	}
	e.Status = status
	return e
}
