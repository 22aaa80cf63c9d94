package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// manifestEvery is the time that a manifest covers, unless that has more messages than
	// one may name.
	manifestEvery = time.Minute
	// settled is how old a record of publishing is before a manifest counts on it. It is
	// more than resultTimeout, and than the clocks of two database servers differ: by
	// then a transaction that records has ended, has an id, or waits for a lock.
	settled = resultTimeout + 5*time.Second
	// manifestRetry is the pause after an error, and while a transaction that is still
	// open holds the next manifest back; manifestUntaken that while no queue takes one.
	manifestRetry   = 5 * time.Second
	manifestUntaken = 30 * time.Second
	// manifestSends bounds how many manifests are sent before the next is made.
	manifestSends = 100
)

// A manifestPublisher tells the groups of consumers what the relay has published, so
// that they can find out what they have not got.
//
// A manifest is made from the outbox, and not from what a session remembers, so that
// the death of a replica leaves nothing out. It names the rows whose published_at,
// which is when the transaction began that recorded them, is between the end of the last
// manifest and a time before which no such transaction is open. The row of the manifest
// is written first and then sent: a successor sends the same again, and readers
// drop what they have. Two replicas that both believe to own the leader's shard make the
// same number, and the primary key refuses the second.
type manifestPublisher struct {
	pool     *pgxpool.Pool
	exchange string
	marker   string // the exchange by which a broker is recognised
	every    time.Duration
	settled  time.Duration
	keep     time.Duration
	leases   *shards.Leases
	blocked  func() bool
	timeout  time.Duration // of a confirm
	metrics  *metrics
	log      zerolog.Logger
}

// run makes and sends manifests over conn until ctx ends, while this replica is the one
// to do so.
func (p *manifestPublisher) run(ctx context.Context, conn *amqp.Connection) {
	for ctx.Err() == nil {
		wait := electEvery
		if p.leases.Owns(leaderShard) {
			var err error
			if wait, err = p.step(ctx, conn); err != nil {
				wait = manifestRetry
				if ctx.Err() == nil && !conn.IsClosed() {
					p.log.Warn().Str("error", pgpool.LogText(err)).Msg("publishing a manifest failed, will retry")
				}
			}
		}
		_ = backoff.Sleep(ctx, wait) // the loop ends with ctx
	}
}

// step makes the next manifest if it is due, sends those that were not sent, and returns
// when to do so again.
func (p *manifestPublisher) step(ctx context.Context, conn *amqp.Connection) (wait time.Duration, err error) {
	wait, err = p.make(ctx)
	if err != nil {
		return 0, err
	}
	done, err := p.send(ctx, conn)
	if err != nil {
		return 0, err
	}
	if !done {
		wait = min(wait, manifestUntaken)
	}
	return wait, nil
}

// A manifestWindow is the time of the next manifest.
type manifestWindow struct {
	epoch, number int64
	from, until   time.Time
	lostBefore    *time.Time
	now           time.Time
}

// manifestWindowSQL reads the window of the next manifest, which may be empty. The
// first one begins now.
//
// A transaction that records has its begin as published_at, and may commit late: the
// window ends before the begin of the oldest that is open. Those of other programs under
// the same role count as well, if they write or wait for a lock.
//
// A manifest that ends in the future was made while the server's clock was ahead. The next
// one begins where the last one ended that did not; messages that both name do no harm.
//
// A loss of the broker's disk is named while the retained rows are republished, and in
// each manifest up to the one of its time: republishing a few rows is quicker than the
// next manifest.
const manifestWindowSQL = `
	select coalesce((select restores from database_origin), 0), coalesce(l.epoch, -1), coalesce(l.number, 0),
	       case when l.ends_at <= now() then l.ends_at else (select max(ends_at) from outbox_manifests where ends_at <= now() - $1::interval) end,
	       least(now() - $1::interval, (
			select min(xact_start) from pg_stat_activity
			where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
			  and (backend_xid is not null or wait_event_type = 'Lock'))),
	       (select coalesce(republish_before, case when lost_at > coalesce(l.ends_at, '-infinity') then lost_at end)
	        from known_brokers where exchange = $2), now()
	from (select) as one
	left join lateral (select * from outbox_manifests order by epoch desc, number desc limit 1) l on true`

// make writes the next manifest if it is due, and returns when the one after is. It
// takes no transaction: what was published until the end of the window does not change.
func (p *manifestPublisher) make(ctx context.Context) (wait time.Duration, err error) {
	w, err := p.window(ctx)
	if err != nil {
		return 0, err
	}
	if due := w.from.Add(p.every); w.until.Before(due) {
		// Not before the records of that time are settled, and not at once if a
		// transaction holds it back.
		return max(due.Add(p.settled).Sub(w.now), min(manifestRetry, p.every)), nil
	}
	m, err := p.compose(ctx, w)
	if err != nil {
		return 0, err
	}
	return 0, p.insert(ctx, m)
}

func (p *manifestPublisher) window(ctx context.Context) (w manifestWindow, err error) {
	var last int64
	var from *time.Time
	err = p.pool.QueryRow(ctx, manifestWindowSQL, p.settled, p.marker).Scan(&w.epoch, &last, &w.number, &from, &w.until, &w.lostBefore, &w.now)
	if err != nil {
		return w, fmt.Errorf("read the last manifest: %w", err)
	}
	if last != w.epoch { // the first one, or the first after a restore
		w.number = 0
	}
	w.number++
	if from != nil {
		w.from = *from
		return w, nil
	}
	w.from = w.until.Add(-p.every) // what was published before is in no manifest
	return w, nil
}

// compose reads what was published in w. If that is too much for a manifest, it ends
// earlier: before the last transaction that recorded.
func (p *manifestPublisher) compose(ctx context.Context, w manifestWindow) (event.Manifest, error) {
	m := event.Manifest{Epoch: w.epoch, Number: w.number, From: w.from, Until: w.until, Messages: make(map[event.Key]event.IDs)}
	if w.lostBefore != nil {
		m.LostBefore = *w.lostBefore
	}
	type published struct {
		ID  uuid.UUID
		Key event.Key
		At  time.Time
	}
	found, err := pgpool.Collect(ctx, p.pool, "read what was published", pgx.RowToStructByPos[published], `
		select id, routing_key, published_at from outbox_messages
		where status = 'published' and published_at >= $1 and published_at < $2
		order by published_at limit $3`, w.from, w.until, event.MaxManifestIDs+1)
	if err != nil {
		return m, err
	}
	if len(found) > event.MaxManifestIDs {
		m.Until = found[event.MaxManifestIDs].At
		if found = found[:event.MaxManifestIDs]; !m.Until.After(m.From) {
			// Somebody has marked them by hand: the relay records fewer at once.
			m.Until = m.From.Add(time.Microsecond)
		}
	}
	byKey := make(map[event.Key][]uuid.UUID)
	for _, one := range found {
		if one.At.Before(m.Until) {
			byKey[one.Key] = append(byKey[one.Key], one.ID)
		}
	}
	for key, ids := range byKey {
		m.Messages[key] = event.NewIDs(ids)
	}
	return m, nil
}

// insert keeps m until it was sent, and for as long as the messages that it names.
func (p *manifestPublisher) insert(ctx context.Context, m event.Manifest) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	return pgpool.Exec(ctx, p.pool, "write manifest", `
		with old as (delete from outbox_manifests where ends_at < now() - $6::interval)
		insert into outbox_manifests (epoch, number, starts_at, ends_at, body) values ($1, $2, $3, $4, $5)`,
		m.Epoch, m.Number, m.From, m.Until, body, p.keep)
}

// send publishes the manifests that were not sent, in their order, and reports whether
// none is left. While no queue takes them there is no group that compares, or its
// queue is being made.
func (p *manifestPublisher) send(ctx context.Context, conn *amqp.Connection) (done bool, err error) {
	type unsent struct {
		Epoch, Number int64
		At            time.Time
		Body          []byte
	}
	found, err := pgpool.Collect(ctx, p.pool, "read unsent manifests", pgx.RowToStructByPos[unsent], `
		select epoch, number, starts_at, body from outbox_manifests
		where sent_at is null order by epoch, number limit $1`, manifestSends)
	if err != nil {
		return false, err
	}
	if len(found) == 0 {
		return true, nil
	}
	if p.blocked() {
		return false, nil
	}
	publisher, err := rabbit.NewPublisher(conn, 1)
	if err != nil {
		return false, err
	}
	defer publisher.Close()
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	for _, one := range found {
		if !p.leases.Owns(leaderShard) {
			return false, nil
		}
		err := publisher.PublishWait(ctx, p.exchange, string(event.ManifestKey), amqp.Publishing{
			MessageId: fmt.Sprintf("manifest-%d-%d", one.Epoch, one.Number), Type: string(event.ManifestKey), ContentType: "application/json",
			Timestamp: one.At, DeliveryMode: amqp.Persistent, AppId: appID, Body: one.Body,
		})
		if errors.Is(err, rabbit.ErrReturned) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("publish manifest: %w", err)
		}
		err = pgpool.Exec(ctx, p.pool, "note that a manifest was sent", `update outbox_manifests set sent_at = now() where epoch = $1 and number = $2`, one.Epoch, one.Number)
		if err != nil {
			return false, err
		}
		p.metrics.manifests.Inc()
	}
	return len(found) < manifestSends, nil
}
