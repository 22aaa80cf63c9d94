package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/costly"
	"github.com/cityconnect/cityconnect/report-service/internal/ratelimit"
)

// gates let requests in that cost the database much. Officials have one of their own:
// their work does not wait for what everybody may ask, and an export takes as long as
// it takes.
type gates struct{ public, officials *costly.Gate }

// How long a request waits for its turn: long enough for a burst, and short enough
// that somebody still waits for the answer. A part of an export is waited for longer,
// because without it all before it are in vain.
const publicPatience, officialsPatience = 2 * time.Second, 10 * time.Second

func newGates(room int) gates {
	room = max(1, room)
	return gates{
		costly.New(room, 1, costly.Share, publicPatience),
		costly.New(room, 2, ratelimit.Limit{}, officialsPatience),
	}
}

// do does the work of a request at its turn. A caller without a sign-in counts by
// address.
func (g gates) do(ctx context.Context, r *http.Request, work func(ctx context.Context) error) error {
	by := caller(r)
	gate, name := g.public, "user "+by.ID
	if by.Official {
		gate = g.officials
	}
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
