package geocoder

import (
	"net/netip"
	"sync"

	"golang.org/x/time/rate"

	"github.com/cityconnect/cityconnect/platform/service"
)

const (
	// perClient and burst are how often one address may ask, in seconds and at once:
	// far more than somebody types, and a part of what the city may ask.
	perClient, burst = 2, 20
	// maxClients bounds the addresses that are counted, to some megabytes.
	maxClients = 20_000
)

// A Budget shares out the requests to a geocoder among the addresses that ask, so that
// none takes them all. It is safe for concurrent use, and the zero Budget is full. It
// keeps addresses in memory alone, until there are many.
type Budget struct {
	mu                sync.Mutex
	current, previous map[netip.Prefix]*rate.Limiter
}

// Allow reports whether the address may ask now. All IPv6 addresses of a /64 count as
// one. What is not an address is one, too.
func (b *Budget) Allow(address string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	network := service.Network(address)
	if b.current == nil || len(b.current) >= maxClients {
		b.current, b.previous = make(map[netip.Prefix]*rate.Limiter), b.current
	}
	limit := b.current[network]
	if limit == nil {
		if limit = b.previous[network]; limit == nil {
			limit = rate.NewLimiter(perClient, burst)
		}
		b.current[network] = limit
	}
	return limit.Allow()
}
