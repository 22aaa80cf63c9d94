package api

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// partSize is how many reports an export reads at once, and so how many
	// it keeps in memory, besides their text.
	partSize = 1000
	// partTimeout is how long the client may take to read a page of them.
	partTimeout = time.Minute
)

// parts are an answer that is read from the database part by part, and never as a whole
// in memory.
type parts struct {
	read  func(ctx context.Context, after *report.Cursor) (next *report.Cursor, err error) // next is nil after the last part
	begin func()                                                                           // writes what comes before the first part, headers included
	write func()                                                                           // writes the part that was read
}

// sendParts answers with p, which writes to out. Reading a part and writing it down take a
// turn, because each costs about as much as the other. The client's reading takes none: it
// holds up nobody.
func (g Gates) sendParts(w http.ResponseWriter, r *http.Request, out *bytes.Buffer, p parts) error {
	gate := g.public
	if user(r).Official {
		gate = g.exports
	}
	var next *report.Cursor
	prepare := func(after *report.Cursor) error {
		return g.doAt(r.Context(), r, gate, func(ctx context.Context) (err error) {
			if next, err = p.read(ctx, after); err != nil {
				return err
			}
			if after == nil {
				p.begin()
			}
			p.write()
			return nil
		})
	}
	if err := prepare(nil); err != nil {
		return err
	}
	conn := http.NewResponseController(w)
	for {
		_ = conn.SetWriteDeadline(time.Now().Add(partTimeout)) // without a connection, as in some tests, it does nothing
		if _, err := out.WriteTo(w); err != nil || next == nil {
			return nil //nolint:nilerr // the client left, or has all
		}
		if prepare(next) != nil {
			panic(http.ErrAbortHandler) // the answer has begun: cut it, so that the client does not take it for complete
		}
	}
}
