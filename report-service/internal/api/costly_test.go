package api_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Clusters are shared for a moment, but not with a report that was hidden in between,
// nor without one that is shown again.
func TestHiddenReportIsInNoSharedCluster(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, err := s.pool.Exec(t.Context(), `
		insert into reports (id, title, description, category_id, latitude, longitude, privacy_level, status, version, created_at, updated_at)
		select gen_random_uuid(), 'Dark lamp', '', 2, -6.91, 107.6, 'public', 'pending', 1, now(), now() from generate_series(1, 160)`)
	if err != nil {
		t.Fatal(err)
	}
	var id uuid.UUID
	if err := s.pool.QueryRow(t.Context(), `select id from reports limit 1`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	want := func(when string, want int64) {
		t.Helper()
		shown, _ := ok[reportapi.MapPoints](s, call{method: "GET", path: "/map/points?bbox=107,-7,108,-6&zoom=12"}, http.StatusOK)
		var got int64
		for _, c := range shown.Clusters {
			got += c.Count
		}
		if got != want || len(shown.Points) > 0 {
			t.Errorf("%s: %d reports in clusters and %d points, want %d and none", when, got, len(shown.Points), want)
		}
	}
	olga := token(t, "olga", auth.Official)
	want("at first", 160)
	want("again", 160)
	s.hide(olga, id, "a name")
	want("once it is hidden", 159)
	s.wantStatus(http.StatusOK, call{method: "DELETE", path: "/reports/" + id.String() + "/hidden", token: olga})
	want("once it is shown again", 160)
}

// slowMaps are reports whose map takes until the test ends.
type slowMaps struct {
	begun chan struct{}
	end   chan struct{}
}

func (s slowMaps) Map(ctx context.Context, _ report.Filter, _ report.Grid, _ int) (report.Map, error) {
	s.begun <- struct{}{}
	select {
	case <-s.end:
	case <-ctx.Done():
	}
	return report.Map{}, ctx.Err()
}

func (slowMaps) Hidden(context.Context) (string, error) { return "", nil }

// slowLists are reports whose list takes until the test ends.
type slowLists struct {
	end chan struct{}
}

func (s slowLists) List(ctx context.Context, filter report.Filter, _ *report.Cursor, _ int, _ string) (report.Page, error) {
	if filter.Order != report.Newest {
		select {
		case <-s.end:
		case <-ctx.Done():
		}
	}
	return report.Page{}, ctx.Err()
}

func (slowLists) Figures(context.Context) (report.Figures, error) { return report.Figures{}, nil }

// Many lists by score or by the latest change are refused; the newest are for everybody.
func TestSortedListsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	lists := slowLists{end: make(chan struct{})}
	s := newServer(t, func(p *parts) {
		p.Lists.Reports, p.CostlyAtOnce = lists, 4
	})
	list := func(order string) call {
		return call{method: "GET", path: "/reports?order=" + order, headers: map[string]string{"X-Forwarded-For": "192.0.2.1"}}
	}
	const flood = 30
	answers := make(chan int, flood)
	for i := range flood {
		go func() { answers <- s.do(list([]string{"score", "changed"}[i%2])).StatusCode }()
	}
	for range flood - 1 {
		if got := <-answers; got != http.StatusTooManyRequests {
			t.Errorf("got %d, want 429", got)
		}
	}
	s.wantStatus(http.StatusOK, list("newest"))
	close(lists.end)
	if got := <-answers; got != http.StatusOK {
		t.Errorf("the one that ran: %d, want 200", got)
	}
}

// Many maps of one address are refused, and take nothing from others.
func TestMapsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	maps := slowMaps{begun: make(chan struct{}, 100), end: make(chan struct{})}
	s := newServer(t, func(p *parts) {
		p.Map.Reports, p.CostlyAtOnce = maps, 4
	})
	ask := func(address string) call {
		return call{method: "GET", path: "/map/points?bbox=107,-7,108,-6&zoom=12&q=lamp", headers: map[string]string{"X-Forwarded-For": address}}
	}
	const flood = 30
	answers := make(chan int, flood)
	for range flood {
		go func() { answers <- s.do(ask("192.0.2.1")).StatusCode }()
	}
	for range flood - 1 { // most at once, and those that wait for the one for too long
		if got := <-answers; got != http.StatusTooManyRequests {
			t.Errorf("got %d, want 429", got)
		}
	}
	<-maps.begun
	other := make(chan int, 1)
	go func() { other <- s.do(ask("192.0.2.2")).StatusCode }()
	<-maps.begun
	s.wantStatus(http.StatusOK, call{method: "GET", path: "/reports"})
	close(maps.end)
	if got := <-answers; got != http.StatusOK {
		t.Errorf("the one that ran: %d, want 200", got)
	}
	if got := <-other; got != http.StatusOK {
		t.Errorf("another address: %d, want 200", got)
	}
}

// slowExports are queues whose parts of exports take until the test ends.
type slowExports struct {
	begun, end    chan struct{}
	running, most *atomic.Int64
}

func (s slowExports) Queue(context.Context, report.Filter, *report.Cursor, int) (report.Queue, error) {
	s.most.Store(max(s.running.Add(1), s.most.Load()))
	defer s.running.Add(-1)
	s.begun <- struct{}{}
	<-s.end
	return report.Queue{}, nil
}

// An official exports twice at a time, and further exports are refused. Parts of all of them
// are read one after the other, and the official's other work does not wait for that.
func TestExportsOfAnOfficialTakeTurns(t *testing.T) {
	t.Parallel()
	exports := slowExports{begun: make(chan struct{}, 100), end: make(chan struct{}), running: new(atomic.Int64), most: new(atomic.Int64)}
	s := newServer(t, func(p *parts) {
		p.Exports.Workbench, p.CostlyAtOnce = exports, 8
	})
	export := func(official string) call {
		return call{method: "GET", path: "/reports/export", token: token(t, official, auth.Official)}
	}
	const flood, inside = 12, 2
	olga := export("olga")
	answers := make(chan int, flood)
	for range flood {
		go func() { answers <- s.do(olga).StatusCode }()
	}
	for range flood - inside {
		if got := <-answers; got != http.StatusTooManyRequests {
			t.Errorf("got %d, want 429", got)
		}
	}
	<-exports.begun
	oscar := export("oscar")
	other := make(chan int, 1)
	go func() { other <- s.do(oscar).StatusCode }()
	s.wantStatus(http.StatusOK, call{method: "GET", path: "/reports/queue?q=lamp", token: olga.token})
	close(exports.end)
	for range inside {
		if got := <-answers; got != http.StatusOK {
			t.Errorf("one that waited: %d, want 200", got)
		}
	}
	if got := <-other; got != http.StatusOK {
		t.Errorf("another official: %d, want 200", got)
	}
	if got := exports.most.Load(); got != 1 {
		t.Errorf("%d parts were read at a time, want 1", got)
	}
}
