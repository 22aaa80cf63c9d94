// Package transport writes streams to their clients: it takes from a Source
// what its client is to get, writes it to the client's connection, and tells
// the Source when the client leaves or stops reading.
//
// It handles HTTP, sockets and which goroutine writes when. It has no notion of the
// bytes' meaning, or of the client's identity.
package transport

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// A Source is where a Conn takes its bytes from. The Conn works in turns:
// Wake or Flush begins a turn, and the one goroutine that has it calls Take
// until the Source rests or has ended. During a turn Wake must not be called.
//
//	resting ──Wake, Flush──► turn: Take, write, Sent, Rest ──┬─► resting
//	   ▲                      ▲                 │            │
//	   │                      └──more waits─────┘            └─► ended: Closed
//	   └──────────────────────── nothing waits
type Source interface {
	// Take moves waiting bytes into b. When none wait, the source rests, or
	// has ended, and ended says which of the two.
	Take(b *Buffer, now time.Time) (ended bool)
	// Sent says that the bytes taken are written.
	Sent(b *Buffer)
	// Rest reports that nothing waits. From then on the source rests.
	Rest() bool
	// Fail ends the source because its client left or does not read. A
	// deadline's error means the latter.
	Fail(err error)
	// Closed says that the connection is closed. It is called once, in the turn
	// in which Take reported the end.
	Closed()
}

// A Commit is the one that made an event.
type Commit struct {
	At      time.Time
	TraceID string // of the event's message; "" if it is not known here
}

// A Buffer is what a Conn writes at once. It is used again and again.
type Buffer struct {
	Bytes []byte
	// Commits are those of the events that came live, of those that many read.
	// Shared is how many bytes these are.
	Commits []Commit
	Shared  int
}

// A Conn is the connection of one client. Write is for the time before Serve,
// all other methods are for the time after.
type Conn interface {
	// Write writes all of p. It may block up to the write timeout.
	Write(p []byte) error
	// Serve writes what source has until it has ended. It may return earlier
	// and leave the work to other goroutines.
	Serve(source Source)
	// Wake has a writer begin a turn. It never blocks.
	Wake()
	// Flush begins a turn in the caller's goroutine, where that is possible
	// without blocking, and otherwise wakes the writer.
	Flush()
	// Interrupt ends a write that waits for the client. It may be called at
	// any time.
	Interrupt()
}

// A Transport makes Conns out of requests.
type Transport interface {
	// Open begins the response: status and header.
	Open(w http.ResponseWriter, r *http.Request) (Conn, error)
	// Run does the work in the background that the Conns need. It returns when
	// ctx has ended; every Conn must be closed before.
	Run(ctx context.Context)
}

// errLeft says that the client closed its connection.
var errLeft = errors.New("client closed the connection")

// SetHeader sets the header of every stream. A proxy that buffers or transforms
// would hold events back.
func SetHeader(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
}
