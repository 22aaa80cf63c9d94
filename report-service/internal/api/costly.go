package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/costly"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Gates let requests in that cost the database much. Officials have one of their own:
// their work does not wait for what everybody may ask, and an export takes as long as
// it takes. Exports of officials do not wait with the rest of their work: one official runs
// a part of one export at a time.
type Gates struct{ public, officials, exports *costly.Gate }

// How long a request waits for its turn: long enough for a burst, and short enough
// that somebody still waits for the answer. A part of an export is waited for longer,
// because without it all before it are in vain.
const publicPatience, officialsPatience = 2 * time.Second, 10 * time.Second

// exportShare is what the exports of one official may take: a quarter of a processor, and
// two seconds at once, in which 100,000 reports are exported. Who has used that up waits
// for less than officialsPatience before the next part: an export only becomes slower.
var exportShare = ratelimit.Limit{Turns: 2000, Period: 8 * time.Second}

// NewGates returns gates that so many requests pass at a time, each of everybody and of officials.
func NewGates(room int) Gates {
	room = max(1, room)
	return Gates{
		costly.New(room, 1, costly.Share, publicPatience),
		costly.New(room, 2, ratelimit.Limit{}, officialsPatience),
		costly.New(max(1, room/2), 1, exportShare, officialsPatience),
	}
}

// do does the work of a request at its turn. A caller without a sign-in counts by
// address.
func (g Gates) do(ctx context.Context, r *http.Request, work func(ctx context.Context) error) error {
	gate := g.public
	if user(r).Official {
		gate = g.officials
	}
	return g.doAt(ctx, r, gate, work)
}

// doFor is do for reading what matches a filter, which costs little without a search.
func (g Gates) doFor(filter report.Filter, r *http.Request, work func(ctx context.Context) error) error {
	if filter.Costly() {
		return g.do(r.Context(), r, work)
	}
	return work(r.Context())
}

// doAt is do at a certain gate.
func (g Gates) doAt(ctx context.Context, r *http.Request, gate *costly.Gate, work func(ctx context.Context) error) error {
	by := user(r)
	name := "user " + by.ID
	if by.ID == "" {
		name = "address " + addressOf(r)
	}
	err := gate.Do(ctx, name, work)
	if tooMany, ok := errors.AsType[*costly.TooManyError](err); ok {
		problem := service.TooManyRequests
		problem.RetryAfter = tooMany.Wait
		return problem.New("too many searches, sorted lists, maps or exports of yours")
	}
	if errors.Is(err, costly.ErrBusy) {
		return service.Unavailable.New("too many searches, sorted lists, maps or exports at this moment")
	}
	return err
}
