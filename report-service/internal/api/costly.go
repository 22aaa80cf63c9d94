package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/querybudget"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Gates let requests in that cost the database much. Officials have one of their own:
// their work does not wait for what everybody may ask. So have long answers, which are
// read part by part: exports of officials, and open data.
type Gates struct {
	public, officials *querybudget.Gate
	exports, openData *querybudget.Long
	readings          *singleflight.Group // of what is the same for all who ask at that moment
}

// How long a request waits for its turn: long enough for a burst, and short enough
// that somebody still waits for the answer.
const publicPatience, officialsPatience = 2 * time.Second, 10 * time.Second

// How many long answers are under way, of all and of each: with more of them, the parts of
// each would come further apart than the gateway waits.
const (
	mostLong, longEach       = 32, 4
	mostExports, exportsEach = 8, 2
)

// NewGates returns gates that so many requests pass at a time, each of everybody and of officials.
func NewGates(room int) Gates {
	room = max(1, room)
	return Gates{
		querybudget.New(room, 1, querybudget.Share, publicPatience),
		querybudget.New(room, 2, ratelimit.Limit{}, officialsPatience),
		querybudget.NewLong(mostExports, exportsEach), querybudget.NewLong(mostLong, longEach),
		new(singleflight.Group),
	}
}

// do does the work of a request at its turn.
func (g Gates) do(ctx context.Context, r *http.Request, work func(ctx context.Context) error) error {
	gate := g.public
	by := user(r)
	if connection, _ := by.Scope.Connection(); by.Official || connection {
		gate = g.officials
	}
	return refusalOf(gate.Do(ctx, payer(r), work))
}

// doFor is do for reading what matches a filter, which costs little without a search.
func (g Gates) doFor(filter report.Filter, r *http.Request, work func(ctx context.Context) error) error {
	if filter.Costly() {
		return g.do(r.Context(), r, work)
	}
	return work(r.Context())
}

// payer returns by whom a request is counted that costs the city much: by the account, and
// otherwise by the address. Anybody becomes any number of guests.
func payer(r *http.Request) string {
	if by := user(r); by.ID != "" && !by.Guest {
		return "user " + by.ID
	}
	return "address " + networkOf(r)
}

// refusalOf returns err, or the problem that the refusal of a gate is for the client.
func refusalOf(err error) error {
	if tooMany, ok := errors.AsType[*querybudget.TooManyError](err); ok {
		return refusedFor(tooMany.Wait, service.TooManyRequests, "too many searches, sorted lists, maps or exports of yours")
	}
	if errors.Is(err, querybudget.ErrBusy) {
		return service.Unavailable.New("too many searches, sorted lists, maps or exports at this moment")
	}
	return err
}
