package open311

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
)

const (
	// lookEvery is how often a worker looks for targets that are due.
	lookEvery = 5 * time.Second
	// pollTimeout bounds reading both sides of a target once.
	pollTimeout = 5 * time.Minute
	// readAgain and fetchAgain are how far the windows reach back over what was read: what
	// was committed late, and the clock of another system.
	readAgain, fetchAgain = 5 * time.Minute, 15 * time.Minute
	// fetchBack is how far updates are fetched back for a report that had no number the last
	// time: they may be its own.
	fetchBack = 24 * time.Hour
	// askedAtOnce is how many numbers a target is asked for at once.
	askedAtOnce = 50
	// maxUpdateID is the longest id of an update that report-service takes.
	maxUpdateID = 200
	// maxWords is the longest text of an update that is handed on.
	maxWords = 1000
)

// Listed is a report of the department, as report-service lists it.
type Listed struct {
	Report uuid.UUID
	Status string
	Wanted bool // it is open, and of a category that is sent
}

// A Number is what a target calls a report.
type Number struct {
	Report    uuid.UUID
	Number    string
	Agreed    []string // statuses of reports that agree with the target's
	OurStatus string
	Their     string // status, in the target's words
}

// A Poller reads both sides of each target every minute: which reports are the department's,
// and what the target did. Any number of workers may run one. What two of them read at once,
// when a poll takes longer than that minute, has its effect once.
type Poller struct {
	sides
	differences *prometheus.GaugeVec
}

// NewPoller returns a Poller of what a Sender sends.
func NewPoller(sender *Sender, reg prometheus.Registerer) *Poller {
	return &Poller{sender.sides, promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
		Name: "open311_differences", Help: "Reports about which the city and the system of a department differ, in the whole database.",
	}, []string{"kind"})}
}

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := p.Poll(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn().Str("error", failure.Describe(err)).Msg("reading the targets of Open311 failed, will retry")
		}
		_ = backoff.Sleep(ctx, backoff.Jitter(lookEvery))
	}
	return nil
}

// Poll reads the targets that are due.
func (p *Poller) Poll(ctx context.Context) error {
	targets, err := p.store.TakeDue(ctx)
	if err != nil {
		return err
	}
	var g errgroup.Group
	for _, t := range targets {
		g.Go(func() error {
			pollCtx, cancel := context.WithTimeout(ctx, pollTimeout)
			defer cancel()
			problem := ""
			if err := p.poll(pollCtx, &t); err != nil {
				problem = err.Error()
				p.log.Warn().Str("target", t.ID.String()).Str("error", problem).Msg("reading a target of Open311 failed, will retry in a minute")
			}
			return p.store.Polled(context.WithoutCancel(ctx), &t, problem)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	counts, err := p.store.Watch(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []Kind{NoNumber, OtherStatus, MissingNumber} {
		p.differences.WithLabelValues(string(kind)).Set(float64(counts[kind]))
	}
	return nil
}

// poll reads both sides of a target. That one of them fails does not hold up the other.
func (p *Poller) poll(ctx context.Context, t *Target) error {
	if err := t.Open(p.keys); err != nil {
		return err
	}
	return errors.Join(p.read(ctx, t), p.sendStatuses(ctx, t), p.fetch(ctx, t), p.check(ctx, t))
}

// read takes the reports that became the department's, and the statuses of those that it has.
func (p *Poller) read(ctx context.Context, t *Target) error {
	since, cursor := t.ReadTo.Add(-readAgain), ""
	if since.Before(t.CreatedAt) {
		since = t.CreatedAt
	}
	for {
		page, err := p.city.changed(ctx, t, since, cursor)
		if err != nil {
			return fmt.Errorf("list reports: %w", err)
		}
		listed := make([]Listed, len(page.Reports))
		for i, r := range page.Reports {
			_, sent := t.Services[r.CategoryID]
			listed[i] = Listed{Report: r.ID, Status: string(r.Status), Wanted: sent && open(string(r.Status))}
		}
		if err := p.store.Listed(ctx, t.ID, listed); err != nil {
			return err
		}
		if cursor = page.NextCursor; cursor == "" {
			t.ReadTo = t.Now
			return nil
		}
	}
}

// fetch hands on what the target did, in its order. It stops at the first update that
// report-service cannot take now: the next poll begins there.
func (p *Poller) fetch(ctx context.Context, t *Target) error {
	from := t.FetchedTo.Add(-fetchAgain)
	sent, err := p.store.Numbered(ctx, t.ID, t.FetchedTo)
	if err != nil {
		return err
	}
	if sent != nil && sent.Before(from) {
		from = *sent
	}
	updates, a := p.client.updates(ctx, t, from, t.Now.Add(fetchAgain))
	if a.Verdict != ledger.Delivered {
		return fmt.Errorf("fetch updates: %s", cmp.Or(a.Error, a.Class))
	}
	numbers, hashes := make([]string, len(updates)), make([][]byte, len(updates))
	for i, u := range updates {
		if u.ID == "" {
			u.ID = u.Number + u.At + u.Status + u.Description
		}
		sum := sha256.Sum256([]byte(u.ID))
		numbers[i], hashes[i] = u.Number, sum[:]
	}
	unseen, err := p.store.Unseen(ctx, t.ID, numbers, hashes)
	if err != nil {
		return err
	}
	for _, i := range slices.Sorted(maps.Keys(unseen)) {
		for _, report := range unseen[i] {
			if err := p.handOn(ctx, t, report, &updates[i], hashes[i]); err != nil {
				return err
			}
		}
	}
	t.FetchedTo = t.Now
	return nil
}

// handOn gives an update to report-service, and notes that it has it.
func (p *Poller) handOn(ctx context.Context, t *Target, report uuid.UUID, u *Update, hash []byte) error {
	id := u.ID
	if id == "" || len(id) > maxUpdateID {
		id = hex.EncodeToString(hash)
	}
	words := u.Description
	if runes := []rune(words); len(runes) > maxWords {
		words = string(runes[:maxWords-1]) + "…"
	}
	status, with := t.status(u.Status)
	own, err := p.isOwn(ctx, t, report, with, u.Description)
	if own {
		with = nil // it was noted when it was sent
	} else if err == nil {
		err = p.city.update(ctx, t, report, id, status, words)
	}
	if errors.Is(err, errNotOurs) {
		if err := p.store.Leave(ctx, t.ID, report); err != nil {
			return err
		}
	} else if err != nil && !errors.Is(err, errRefused) { // a refused one shows as a difference
		return fmt.Errorf("hand on an update: %w", err)
	}
	return p.store.Seen(ctx, t.ID, report, hash, u.Status, with)
}

// isOwn reports whether an update repeats what officials of the city did. It does not if the
// target did something since: then the update says how both sides end.
func (p *Poller) isOwn(ctx context.Context, t *Target, report uuid.UUID, with []string, words string) (bool, error) {
	if t.UpdateKey == "" {
		return false, nil
	}
	history, err := p.city.history(ctx, t, report)
	for _, e := range slices.Backward(history) {
		if e.DepartmentName != "" {
			return false, err
		}
		if e.Note == words && slices.Contains(with, string(e.ToStatus)) {
			return true, err
		}
	}
	return false, err
}

// sendStatuses sends a target that takes updates the statuses that officials of the city gave to
// reports. What came from a connection is never sent. What the target refuses shows as a
// difference.
func (p *Poller) sendStatuses(ctx context.Context, t *Target) error {
	if t.UpdateKey == "" {
		return nil
	}
	unsent, err := p.store.Unsent(ctx, t.ID)
	if err != nil {
		return err
	}
	for _, n := range unsent {
		history, err := p.city.history(ctx, t, n.Report)
		if err != nil && !errors.Is(err, errNotOurs) {
			return fmt.Errorf("read a history: %w", err)
		}
		last := len(history) - 1
		for last > 0 && history[last].FromStatus == history[last].ToStatus { // a reply, or a correction
			last--
		}
		their, with := n.Their, n.Agreed
		if their == "" {
			their, with = "open", agreed["open"]
		}
		if last >= 0 && history[last].DepartmentName == "" {
			if string(history[last].ToStatus) != n.OurStatus {
				continue // it has changed since: the next poll knows
			}
			switch a := p.client.sendStatus(ctx, t, n, history[last]); {
			case a.Verdict == ledger.Delivered:
				their, with = extended[n.OurStatus], agreed[extended[n.OurStatus]]
			case a.Verdict != ledger.Refused && a.Status != http.StatusNotFound:
				return fmt.Errorf("send an update: %s", cmp.Or(a.Error, a.Class))
			}
		}
		if err := p.store.SetStatus(ctx, t.ID, n.Report, their, with, true); err != nil {
			return err
		}
	}
	return nil
}

// check asks the target for some of the numbers that it gave, and for their statuses. That it
// answers with none of them says nothing: few of these systems can be asked.
func (p *Poller) check(ctx context.Context, t *Target) error {
	numbers, err := p.store.Unchecked(ctx, t.ID, askedAtOnce)
	if err != nil || len(numbers) == 0 {
		return err
	}
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = n.Number
	}
	known, a := p.client.statuses(ctx, t, names)
	if a.Verdict != ledger.Delivered && !saysNothing(a) {
		return fmt.Errorf("ask for numbers: %s", cmp.Or(a.Error, a.Class))
	}
	asked, missing := []uuid.UUID{}, []uuid.UUID{}
	for _, n := range numbers {
		asked = append(asked, n.Report)
		status, ok := known[n.Number]
		if !ok && len(known) > 0 {
			missing = append(missing, n.Report)
		}
		// An update says more than open or closed.
		if with := agreed[status]; ok && with != nil && !slices.ContainsFunc(n.Agreed, func(s string) bool { return slices.Contains(with, s) }) {
			isNew := n.Their != "" || status != "open" // it was open when it was filed
			if err := p.store.SetStatus(ctx, t.ID, n.Report, status, with, isNew); err != nil {
				return err
			}
		}
	}
	return p.store.Checked(ctx, t.ID, asked, missing)
}
