package service

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"
)

const (
	// maxBody is far above what any operation takes; it has room for the longest
	// text with every character written as an escape.
	maxBody = 64 << 10
	// bodyTimeout ends the reading of a body that trickles in. The server has no
	// such limit of its own, because it would also end the streams. Together with
	// DefaultTimeout it is below writeTimeout, so that there is an answer.
	bodyTimeout = 10 * time.Second
	// unreadTimeout is how long an answer waits for a body that nothing has read.
	// A body that is on its way arrives in that time; without it the client would
	// read a reset instead of the answer.
	unreadTimeout = time.Second
	// maxUnread is how much of a body that is too large is read for its answer to
	// arrive: somewhat more than the largest upload.
	maxUnread = 16 << 20
	// maxUpload is what an upload may take that makes progress all the time: 12
	// MiB at 200 kbit/s.
	maxUpload = 10 * time.Minute
)

// An Upload is a kind of request that has more to send than others. Its body may
// take its time: it has to begin, and to go on, within the time that other bodies
// may take as a whole.
type Upload struct {
	Method   string
	Path     *regexp.Regexp
	MaxBytes int64
}

// limitBody refuses bodies above limit bytes: at once when the client says so
// beforehand, otherwise when the reading gets there. A body must have arrived
// within timeout, and what needs no body hardly waits for it: net/http reads it
// all before it writes the answer, so that a client which promises one and does
// not send it would hold the connection.
func limitBody(limit int64, timeout time.Duration, uploads []Upload) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			limit, end := limit, time.Time{}
			for _, u := range uploads {
				if r.Method == u.Method && u.Path.MatchString(r.URL.Path) {
					limit, end = u.MaxBytes, time.Now().Add(maxUpload)
				}
			}
			if r.ContentLength > limit {
				w.Header().Set("Connection", "close") // rather than read it all
				WriteProblem(w, r, bodyTooLarge(limit))
				// Bytes on their way are read for a moment: a connection that is closed
				// before would take the answer with it.
				conn := http.NewResponseController(w)
				_ = conn.Flush()
				_ = conn.SetReadDeadline(time.Now().Add(unreadTimeout))
				_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxUnread))
				return
			}
			if r.ContentLength == 0 {
				next.ServeHTTP(w, r)
				return
			}
			conn := http.NewResponseController(w) // in tests without a connection it does nothing
			_ = conn.SetReadDeadline(time.Now().Add(timeout))
			body := &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, limit), conn: conn, pause: timeout, end: end}
			r.Body = body
			next.ServeHTTP(w, r)
			if _, err := w.Write(nil); !body.read && !errors.Is(err, http.ErrHijacked) {
				_ = conn.SetReadDeadline(time.Now().Add(unreadTimeout))
				_ = body.Close() // reads the rest; after a failure the server closes the connection
			}
		})
	}
}

// A timedBody lifts the deadline of its connection when it has been read: the
// server goes on reading, to notice a client that leaves, and would take the
// deadline for that.
type timedBody struct {
	io.ReadCloser
	conn *http.ResponseController
	read bool // to its end

	// Of an upload: how long it may make no progress, and when it has to be here.
	pause time.Duration
	end   time.Time
}

func (b *timedBody) Read(p []byte) (int, error) {
	if !b.end.IsZero() {
		deadline := time.Now().Add(b.pause)
		if deadline.After(b.end) {
			deadline = b.end
		}
		_ = b.conn.SetReadDeadline(deadline)
		_ = b.conn.SetWriteDeadline(deadline.Add(writeTimeout)) // that of the server began with the request
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { // readers return it as it is
		b.read = true
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}

func bodyTooLarge(limit int64) Problem {
	return BodyTooLarge.New(fmt.Sprintf("the limit is %d bytes", limit))
}
