package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// leaseTime is how long a lane stays with a worker that hangs, or is cut off; see Session
	// for one that died.
	leaseTime = 60 * time.Second
	// renewEvery is how often a worker renews its leases.
	renewEvery = 20 * time.Second
	// scanEvery is how often a worker looks for lanes with something due: committed by
	// others, due again, or left by a dead worker.
	scanEvery = 500 * time.Millisecond
	// idleAfter is how long a worker keeps a lane in which nothing is due.
	idleAfter = 5 * time.Second
	// lanesPerPass and rowsPerLane bound what one pass leases and claims.
	lanesPerPass = 32
	rowsPerLane  = 8
)

// A pass is one exchange with the database: first the questions, and then the
// results.
type pass struct {
	scan    bool                // look for due lanes
	owned   map[string]struct{} // with scan, those that need not be leased
	room    bool                // with scan, lease the others
	renew   []string
	release []string
	disable map[string]bool // lanes; true says that the target is gone
	lease   []string        // lanes in which something is due
	claim   []string        // leased lanes in which something may be due
	inHand  []int64         // deliveries that are not claimed again

	session    int       // the changes of the session before it
	until      time.Time // when the leases end that it got
	renewed    []LeasedLane
	due        []string
	leased     []LeasedLane
	lanes      map[string]Lane // of the channel, for lease and claim
	claimedAt  time.Time
	deliveries map[string][]Delivery // by lane; one in which nothing is due is there, too
	unwanted   bool                  // more waits where nothing may be sent
	err        error
}

// startPass starts a pass if there is something for it.
func (d *Dispatcher) startPass(work context.Context, now time.Time) {
	if d.passing || now.Before(d.passAfter) || !d.held {
		return
	}
	p := pass{disable: make(map[string]bool), session: d.changes}
	if !now.Before(d.renewAt) && len(d.lanes) > 0 {
		p.renew = slices.Collect(maps.Keys(d.lanes))
		d.share()
		d.renewAt, d.contended = now.Add(renewEvery), false
	}
	if p.scan = !now.Before(d.scanAt); p.scan {
		d.scanAt = now.Add(scanEvery)
		p.owned = make(map[string]struct{}, len(d.lanes))
	}
	for name, l := range d.lanes {
		if p.scan {
			p.owned[name] = struct{}{}
			idle := len(l.inHand) == 0 && !l.more && now.Sub(l.usedAt) > idleAfter
			l.leaving = l.leaving || idle && (l.is.Hold != Open || now.After(l.openUntil))
		}
		switch {
		case l.leaving && len(l.inHand) == 0:
			p.release = append(p.release, name)
			delete(d.lanes, name)
		case l.disable && len(l.inHand) == 0:
			p.disable[name] = l.gone
		case len(p.claim) < lanesPerPass && l.mayClaim(now):
			l.more = false // unless something comes in the meantime
			p.claim = append(p.claim, name)
			for id := range l.inHand {
				p.inHand = append(p.inHand, id)
			}
		}
	}
	if p.room = d.busy < d.config.Concurrency; p.room { // otherwise others may have them
		for name := range d.candidates {
			if len(p.lease) == lanesPerPass {
				break
			}
			delete(d.candidates, name)
			p.lease = append(p.lease, name)
		}
	}
	if !p.scan && len(p.renew)+len(p.release)+len(p.disable)+len(p.lease)+len(p.claim) == 0 {
		return
	}
	d.passing = true
	go func() {
		ctx, cancel := context.WithTimeout(work, databaseTimeout)
		defer cancel()
		p.err = d.pass(ctx, &p)
		d.passes <- p
	}()
}

// share gives back some of the lanes of a worker that had more to send than it
// may at once, for others to take. One that is alone gets them again.
func (d *Dispatcher) share() {
	if !d.contended {
		return
	}
	n := len(d.lanes) / 4
	for _, l := range d.lanes {
		if n == 0 {
			return
		}
		l.drop()
		l.leaving = true
		n--
	}
}

// pass does the steps that p asks for. Results from before an error stay in p.
func (d *Dispatcher) pass(ctx context.Context, p *pass) (err error) {
	channel := d.channel.Name()
	p.until = time.Now().Add(leaseTime - d.config.Timeout) // attempts that start before this have ended when the lease does
	if len(p.renew) > 0 {
		if p.renewed, err = d.store.Lease(ctx, channel, d.owner, p.renew, leaseTime); err != nil {
			return fmt.Errorf("renew leases: %w", err)
		}
	}
	if len(p.release) > 0 {
		if err := d.store.Release(ctx, channel, d.owner, p.release); err != nil {
			return fmt.Errorf("release lanes: %w", err)
		}
	}
	for name, gone := range p.disable {
		if err := d.channel.Disable(ctx, name, gone); err != nil {
			return fmt.Errorf("disable target: %w", err)
		}
	}
	if p.scan {
		if p.due, err = d.store.DueLanes(ctx, channel); err != nil {
			return fmt.Errorf("find due lanes: %w", err)
		}
		for _, name := range p.due {
			if _, owned := p.owned[name]; !owned && p.room && len(p.lease) < lanesPerPass && !slices.Contains(p.lease, name) {
				p.lease = append(p.lease, name)
			}
		}
	}
	names := p.claim
	if len(p.lease) > 0 {
		if p.leased, err = d.store.Lease(ctx, channel, d.owner, p.lease, leaseTime); err != nil {
			return fmt.Errorf("lease lanes: %w", err)
		}
		for _, l := range p.leased {
			if l.OpenFor == 0 {
				names = append(names, l.Name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return d.claim(ctx, p, names)
}

// claim claims due deliveries in leased lanes, and withdraws them where nothing may be
// sent.
func (d *Dispatcher) claim(ctx context.Context, p *pass, names []string) (err error) {
	channel := d.channel.Name()
	if p.lanes, err = d.channel.Lanes(ctx, names); err != nil {
		return fmt.Errorf("ask what lanes may send: %w", err)
	}
	var claims []Claim
	withdrawn := make(map[Hold][]string)
	for _, name := range names {
		lane, ok := p.lanes[name]
		if !ok {
			lane.Hold = Closed
			p.lanes[name] = lane
		}
		if lane.Hold == Open {
			claims = append(claims, Claim{Lane: name, Limit: max(rowsPerLane, lane.InFlight), ByReport: lane.ByReport})
		} else {
			withdrawn[lane.Hold] = append(withdrawn[lane.Hold], name)
		}
	}
	for hold, names := range withdrawn {
		more, err := d.store.Withdraw(ctx, channel, hold, names)
		if err != nil {
			return fmt.Errorf("withdraw deliveries: %w", err)
		}
		p.unwanted = p.unwanted || more
	}
	if len(claims) == 0 {
		return nil
	}
	began := time.Now()
	rows, err := d.store.Claim(ctx, channel, claims, p.inHand)
	if err != nil {
		return fmt.Errorf("claim deliveries: %w", err)
	}
	d.metrics.claim.Observe(time.Since(began).Seconds())
	p.claimedAt, p.deliveries = began, make(map[string][]Delivery)
	for _, c := range claims {
		p.deliveries[c.Lane] = nil
	}
	for _, row := range rows {
		p.deliveries[row.Lane] = append(p.deliveries[row.Lane], row)
	}
	return nil
}

// takePass takes what a pass brought.
func (d *Dispatcher) takePass(p pass, now time.Time) {
	d.passing = false
	if _, changes := d.session.state(); changes != p.session { // its leases may be others' by now
		p.until, d.renewAt = now, now
	}
	if p.err != nil {
		d.log.Warn().Str("error", pgpool.LogText(p.err)).Msg("claiming deliveries failed, will retry")
		d.passAfter = now.Add(d.passRetry.Next())
		d.scanAt = now // lanes that it found, or was to lease, are found again
		for _, name := range p.claim {
			d.lanes[name].more = true
		}
		if p.renewed == nil && len(p.renew) > 0 {
			d.renewAt = now
		}
	} else {
		d.passRetry.Reset()
		for name := range p.disable {
			if l, ok := d.lanes[name]; ok {
				l.disable, l.gone, l.more = false, false, true
			}
		}
	}
	if p.renewed != nil {
		d.renewed(p, now)
	}
	for _, leased := range p.leased {
		if _, ok := d.lanes[leased.Name]; !ok {
			l := newLane(leased, p.until, now)
			_, named := d.candidates[l.name]
			_, claimed := p.deliveries[l.name]
			l.more = named || !claimed
			delete(d.candidates, l.name)
			d.lanes[l.name] = l
		}
	}
	for _, name := range p.due {
		if _, claimed := p.deliveries[name]; !claimed {
			if l, ok := d.lanes[name]; ok {
				l.more = true
			}
		}
	}
	for name, is := range p.lanes {
		l, ok := d.lanes[name]
		if !ok {
			continue
		}
		if l.is = is; is.Hold != Open {
			l.drop()
			l.more = p.err != nil || p.unwanted
			continue
		}
		rows := p.deliveries[name]
		l.more = l.more || len(rows) >= max(rowsPerLane, is.InFlight)
		if l.leaving || len(rows) == 0 {
			continue
		}
		for _, row := range rows {
			l.queue = append(l.queue, claimed{row, p.claimedAt})
			l.inHand[row.ID] = struct{}{}
		}
		l.usedAt = now
		d.enqueue(l)
	}
	d.metrics.lanes.Set(float64(len(d.lanes)))
	open := 0
	for _, l := range d.lanes {
		if now.Before(l.openUntil) {
			open++
		}
	}
	d.metrics.open.Set(float64(open))
}

// renewed prolongs the leases that a pass renewed, and gives up the lanes that
// are another worker's now.
func (d *Dispatcher) renewed(p pass, now time.Time) {
	lost := make(map[string]bool, len(p.renew))
	for _, name := range p.renew {
		lost[name] = true
	}
	for _, leased := range p.renewed {
		delete(lost, leased.Name)
		if l, ok := d.lanes[leased.Name]; ok { // it is not released since
			l.until = p.until
			// It lost its turn if the lease had ended. With a full queue nothing else gives it one.
			d.enqueue(l)
			if len(l.inHand) == 0 { // all is written down; an operator may have changed it
				l.adopt(leased, now)
			}
		}
	}
	for name := range lost {
		if l, ok := d.lanes[name]; ok {
			l.drop()
			l.leaving = true
		}
	}
}
