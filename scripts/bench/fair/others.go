package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

const (
	// residents are how many people ask in turn: so many that none meets a limit.
	residents = 200
	// watchers are residents with an open screen, on which their own reports are.
	watchers = 30
	// officials are those who move the watchers' reports, with a screen each.
	officials = 10
	// reportsEach are how many reports each watcher has: enough for a run, in which each
	// is moved twice.
	reportsEach = 80
	// askEvery and moveEvery are how often residents ask, and officials move a report.
	askEvery, moveEvery = 20 * time.Millisecond, 125 * time.Millisecond
	// screenTimeout is how long a notification may be on its way.
	screenTimeout = 30 * time.Second
)

// errMoved says that more turns were asked for than there are reports.
var errMoved = errors.New("all watched reports are resolved; use fewer or shorter turns, or more -reports")

// Others are everybody but the flood.
type others struct {
	residents, watchers, officials []*client.Client
	screens                        *city.Screens
	ledger                         *city.Ledger
	category                       int32

	open  []uuid.UUID // reports that residents look at, vote for and comment on
	moved []watched   // those of the watchers
	moves int         // how many were asked for

	mu     sync.Mutex
	shown  []float64 // milliseconds from the move to the screen, of this turn
	answer waits
}

// A watched report is on the screen of a watcher.
type watched struct {
	ID    uuid.UUID
	Owner int // of the watchers
}

// Waits are what others waited for in a turn.
type waits struct {
	answers, screens []float64 // milliseconds
	failed           int       // requests
}

// enter fills the city, signs everybody in and opens the screens.
func (b *bench) enter(ctx context.Context, url string) (*others, error) {
	o := &others{screens: city.NewScreens()}
	o.ledger = city.NewLedger(func(d city.Delivery) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.shown = append(o.shown, float64(d.ToScreen.Microseconds())/1000)
	})
	for i, group := range []struct {
		people *[]*client.Client
		role   string
		n      int
	}{{&o.residents, "resident", residents}, {&o.watchers, "resident", watchers}, {&o.officials, "official", officials}} {
		*group.people = make([]*client.Client, group.n)
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(city.Entering)
		for j := range group.n {
			g.Go(func() (err error) {
				(*group.people)[j], err = signIn(ctx, b.transport, fmt.Sprint(group.role, " ", j), group.role, fmt.Sprintf("198.18.%d.%d", i, j))
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	categories, err := o.residents[0].Categories(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the categories: %w", err)
	}
	o.category = categories[client.OtherCategory]
	if err := o.fill(ctx, url); err != nil {
		return nil, err
	}
	return o, o.openScreens(ctx)
}

// fill files the city's reports, unless it has some, and gives the watchers theirs.
func (o *others) fill(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	var filled bool
	if err := conn.QueryRow(ctx, `select exists (select from reports)`).Scan(&filled); err != nil {
		return fmt.Errorf("look for reports: %w", err)
	}
	if !filled {
		if err := testbed.Populate(ctx, url, *reports); err != nil {
			return err
		}
	}
	people := make([]string, watchers)
	for i, watcher := range o.watchers {
		people[i] = watcher.ID
	}
	rows, err := conn.Query(ctx, `
		with mine as (
			select id, row_number() over () % cardinality($1::text[]) as owner
			from reports where status = 'pending' limit $2
		)
		update reporters set reporter_id = ($1::text[])[1 + owner] from mine where report_id = id returning id, owner`, people, watchers*reportsEach)
	if err == nil {
		o.moved, err = pgx.CollectRows(rows, pgx.RowToStructByPos[watched])
	}
	if err != nil {
		return fmt.Errorf("give the watchers reports: %w", err)
	}
	rows, err = conn.Query(ctx, `
		select id from reports join reporters on report_id = id
		where status in ('pending', 'in_progress') and reporter_id = 'resident'`)
	if err == nil {
		o.open, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	}
	if err != nil {
		return fmt.Errorf("list open reports: %w", err)
	}
	if len(o.open) == 0 || len(o.moved) == 0 {
		return errMoved
	}
	return nil
}

// openScreens opens those of the watchers, which count, and those of officials.
func (o *others) openScreens(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(city.Entering)
	for i, who := range o.watchers {
		g.Go(func() error {
			_, err := o.screens.Open(ctx, who, func(n client.Notification) {
				o.ledger.See(city.Sight{Report: n.ReportID, Version: n.ReportVersion, Owner: i, Written: n.CreatedAt, Seen: time.Now()})
			})
			return err
		})
	}
	for _, who := range o.officials {
		g.Go(func() error {
			_, err := o.screens.Open(ctx, who, func(client.Notification) {})
			return err
		})
	}
	return g.Wait()
}

// ask makes the requests of one turn, each when it is due, and returns what they and the
// notifications took.
func (o *others) ask(ctx context.Context, span time.Duration) (waits, error) {
	o.shown, o.answer = nil, waits{}
	turn, end := context.WithTimeout(ctx, span)
	defer end()
	var moving sync.WaitGroup
	first := o.moves
	moving.Go(func() {
		testbed.OpenLoop(turn, moveEvery, func(n int, due time.Time) { o.note(due, o.move(ctx, first+n, due)) })
	})
	testbed.OpenLoop(turn, askEvery, func(n int, due time.Time) { o.note(due, o.request(ctx, n)) })
	moving.Wait()
	o.moves += int(span / moveEvery)
	if err := context.Cause(ctx); err != nil {
		return waits{}, err
	}
	if o.moves > 2*len(o.moved) {
		return waits{}, errMoved
	}
	settled, cancel := context.WithTimeout(ctx, screenTimeout)
	defer cancel()
	o.ledger.Settle(settled.Done())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer.screens = o.shown
	if o.ledger.Outstanding() > 0 {
		return waits{}, fmt.Errorf("%d notifications are not on screens after %s", o.ledger.Outstanding(), screenTimeout)
	}
	return o.answer, nil
}

// note counts an answer, which ended now.
func (o *others) note(due time.Time, err error) {
	took := float64(time.Since(due).Microseconds()) / 1000
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer.answers = append(o.answer.answers, took)
	if err != nil {
		o.answer.failed++
	}
}

// mix is what residents ask for, one after the other: what a page loads, and now and then
// something that changes.
const mix = "lrmvlrflrmvlrclmrlvf"

// request makes the nth request of the mix as some resident.
func (o *others) request(ctx context.Context, n int) error {
	who, id := o.residents[rand.IntN(len(o.residents))], o.someOpen()
	switch mix[n%len(mix)] {
	case 'l':
		return who.Do(ctx, http.MethodGet, "/reports", nil, nil)
	case 'm':
		return who.Do(ctx, http.MethodGet, testbed.Screen(16), nil, nil)
	case 'v':
		_, err := who.Vote(ctx, id, "upvote")
		return err
	case 'f':
		_, err := who.CreateReport(ctx, o.newReport())
		return err
	case 'c':
		return comment(ctx, who, id)
	default:
		_, err := who.Report(ctx, id)
		return err
	}
}

func (o *others) someOpen() uuid.UUID { return o.open[rand.IntN(len(o.open))] }

// newReport is one somewhere in the city.
func (o *others) newReport() client.NewReport {
	box := testbed.City
	longitude, latitude := box[0]+rand.Float64()*(box[2]-box[0]), box[1]+rand.Float64()*(box[3]-box[1])
	return client.NewReport{
		Title: "Dark lamp", Description: "Dark since some days, and nobody came.", CategoryID: o.category,
		Latitude: &latitude, Longitude: &longitude, Address: "Jalan Salak 7", PrivacyLevel: "public",
	}
}

func comment(ctx context.Context, who *client.Client, report uuid.UUID) error {
	return who.Do(ctx, http.MethodPost, "/reports/"+report.String()+"/comments", map[string]any{"text": "Still dark.", "anonymous": false}, nil,
		"Idempotency-Key", uuid.NewString())
}

// move makes the nth move: first each report is taken in hand, and then each is resolved.
func (o *others) move(ctx context.Context, n int, due time.Time) error {
	if n >= 2*len(o.moved) {
		return errMoved
	}
	status := []string{"in_progress", "resolved"}[n/len(o.moved)]
	which := o.moved[n%len(o.moved)]
	moved, err := o.officials[n%len(o.officials)].SetStatus(ctx, which.ID, status, "")
	if err != nil {
		return err
	}
	o.ledger.Accept(city.Event{Report: moved.ID, Version: moved.Version, Owner: which.Owner, Screens: 1, Planned: due})
	return nil
}
