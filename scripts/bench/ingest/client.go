package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

// requestTimeout ends a request that hangs.
const requestTimeout = 30 * time.Second

// Clients speak HTTP/1.1 over as many connections, as barely as the floor
// speaks to Postgres: what a client costs is not what is measured.
type clients struct {
	all []*client
}

// A client is one user on one connection.
type client struct {
	conn    net.Conn
	reader  *bufio.Reader
	headers string
	request bytes.Buffer
}

// connect opens n connections, each of a user of its own with the role.
func connect(ctx context.Context, s *testbed.ReportService, n int, role string) (*clients, error) {
	dialer := net.Dialer{Timeout: requestTimeout}
	c := &clients{}
	for i := range n {
		token, err := s.Token(fmt.Sprintf("user-%d", i), role)
		if err != nil {
			return nil, fmt.Errorf("sign a token: %w", err)
		}
		conn, err := dialer.DialContext(ctx, "tcp", s.Addr)
		if err != nil {
			return nil, err
		}
		c.all = append(c.all, &client{
			conn: conn, reader: bufio.NewReader(conn),
			headers: "Host: " + s.Addr + "\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\n",
		})
	}
	return c, nil
}

func (c *clients) close() {
	for _, one := range c.all {
		_ = one.conn.Close()
	}
}

var newReport = fmt.Sprintf(`{"title":%q,"description":%q,"category_id":2,"latitude":-6.9147,"longitude":107.6098,"address":%q,"privacy_level":"public"}`,
	title, description, address)

func (c *clients) create(_ context.Context, conn, _ int) error {
	return c.all[conn].send("POST", "/reports", newReport, 201)
}

func (c *clients) voteOn(reports []uuid.UUID) action {
	return func(_ context.Context, conn, k int) error {
		id, value := ballot(reports, conn, k)
		body := `{"vote_type":"upvote"}`
		if value < 0 {
			body = `{"vote_type":"downvote"}`
		}
		return c.all[conn].send("POST", "/reports/"+id.String()+"/vote", body, 200)
	}
}

// queue reads the first page of the officials' queue, of a category without newReport, which
// is filed tens of thousands of times at one place.
func (c *clients) queue(_ context.Context, conn, _ int) error {
	return c.all[conn].send("GET", "/reports/queue?category=3", "", 200)
}

// send makes a request and wants the status.
func (c *client) send(method, path, body string, want int) error {
	c.request.Reset()
	fmt.Fprintf(&c.request, "%s %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", method, path, c.headers, len(body), body)
	if err := c.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request.Bytes()); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body) // to its end, where the next answer begins
	if err == nil && answer.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return err
}
