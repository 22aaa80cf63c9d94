package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/costly"
)

// gates let requests in that cost the database much. Officials have one of their own:
// their work does not wait for what everybody may ask, and an export takes as long as
// it takes. Exports of officials do not wait with the rest of their work: one official runs
// a part of one export at a time.
type gates struct{ public, officials, exports *costly.Gate }

// How long a request waits for its turn: long enough for a burst, and short enough
// that somebody still waits for the answer. A part of an export is waited for longer,
// because without it all before it are in vain.
const publicPatience, officialsPatience = 2 * time.Second, 10 * time.Second

// exportShare is what the exports of one official may take: a quarter of a processor, and
// two seconds at once, in which 100,000 reports are exported. Who has used that up waits
// for less than officialsPatience before the next part: an export only becomes slower.
var exportShare = ratelimit.Limit{Turns: 2000, Period: 8 * time.Second}

func newGates(room int) gates {
	room = max(1, room)
	return gates{
		costly.New(room, 1, costly.Share, publicPatience),
		costly.New(room, 2, ratelimit.Limit{}, officialsPatience),
		costly.New(max(1, room/2), 1, exportShare, officialsPatience),
	}
}

// do does the work of a request at its turn. A caller without a sign-in counts by
// address.
func (g gates) do(ctx context.Context, r *http.Request, work func(ctx context.Context) error) error {
	gate := g.public
	if caller(r).Official {
		gate = g.officials
	}
	return g.doAt(ctx, r, gate, work)
}

// doAt is do at a certain gate.
func (g gates) doAt(ctx context.Context, r *http.Request, gate *costly.Gate, work func(ctx context.Context) error) error {
	by := caller(r)
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

// addressOf returns the address of the client, which the gateway writes down; without
// a gateway that of the connection. All addresses of a /64 of IPv6 are one.
func addressOf(r *http.Request) string {
	text, _, _ := net.SplitHostPort(r.RemoteAddr)
	if forwarded, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ","); forwarded != "" {
		text = strings.TrimSpace(forwarded)
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return "" // of a client that writes the header itself, without a gateway
	}
	if address = address.Unmap(); address.Is6() {
		if network, err := address.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}
