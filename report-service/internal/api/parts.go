package api

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/querybudget"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// partSize is how many reports an export reads at once, and so how many
	// it keeps in memory, besides their text. It takes the database some milliseconds,
	// for which others wait.
	partSize = 250
	// partTimeout is how long the client may take to read a page of them.
	partTimeout = time.Minute
	// partPatience is for how long a part is tried that the database does not give.
	partPatience = 10 * time.Second
)

// parts are an answer that is read from the database part by part, and never as a whole
// in memory.
type parts struct {
	read  func(ctx context.Context, after *report.Cursor) (next *report.Cursor, err error) // next is nil after the last part
	begin func()                                                                           // writes what comes before the first part, headers included
	write func()                                                                           // writes the part that was read
}

// sendParts answers with p, which writes to out, or refuses to begin. Reading a part and
// writing it down take a turn, because each costs about as much as the other. The client's
// reading takes none: it holds up nobody. An answer that has begun waits for its turns as
// long as its client does, and outlasts a database that is away for a moment.
func sendParts(w http.ResponseWriter, r *http.Request, long *querybudget.Long, out *bytes.Buffer, p parts) error {
	end, err := long.Begin(payer(r))
	if err != nil {
		return refusalOf(err)
	}
	defer end()
	var next *report.Cursor
	prepare := func(after *report.Cursor) error {
		return long.Part(r.Context(), func(ctx context.Context) (err error) {
			ctx, cancel := context.WithTimeout(ctx, service.DefaultTimeout)
			defer cancel()
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
		after := next
		for until := time.Now().Add(partPatience); prepare(after) != nil; {
			if time.Now().After(until) || backoff.Sleep(r.Context(), time.Second) != nil {
				panic(http.ErrAbortHandler) // the answer has begun: cut it, so that the client does not take it for complete
			}
		}
	}
}
