package reconciliation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// Results are what the groups of a database found out, for operators.
type Results struct {
	pool  *pgxpool.Pool
	audit Audit

	mu          sync.Mutex
	recent      []Summary
	recentUntil time.Time
}

// NewResults returns the results in a database with the tables of group/schema.sql, and with
// deleted_rows.
func NewResults(pool *pgxpool.Pool, audit Audit) *Results { return &Results{pool: pool, audit: audit} }

// An Audit keeps, in the transaction of it, that messages were closed.
type Audit func(ctx context.Context, tx pgx.Tx, c Closing) error

// A Closing is that an operator lets a group wait no longer for messages.
type Closing struct {
	Actor, Group, Reason string
	Messages             []uuid.UUID
}

// ToOperations is the Audit of databases whose audit is operations_audit.
func ToOperations(ctx context.Context, tx pgx.Tx, c Closing) error {
	return audit.Write(ctx, tx, audit.Entry{Actor: c.Actor, Action: audit.LossClose},
		map[string]any{"group": c.Group, "message_ids": c.Messages, "reason": c.Reason})
}

// A Summary is what a group found out.
type Summary struct {
	Group string
	Figures
}

// Groups returns a summary for each group that compares, by name. A group of which
// nothing came for as long as missing messages are looked for is gone. The rows that were
// deleted follow under the name of their place, if there are any.
func (r *Results) Groups(ctx context.Context) ([]Summary, error) {
	groups, err := pgpool.Collect(ctx, r.pool, "list groups that compare", pgx.RowTo[string], `
		select consumer_group from reconciliation_starts s
		group by consumer_group
		having max(started_at) > now() - $1::interval or exists (
			select from reconciliation_manifests m where m.consumer_group = s.consumer_group and received_at > now() - $1::interval)
		order by consumer_group`, lookBack)
	if err != nil {
		return nil, err
	}
	summaries := make([]Summary, len(groups))
	for i, group := range groups {
		summaries[i].Group = group
		if summaries[i].Figures, err = (&store{pool: r.pool, group: group}).figures(ctx); err != nil {
			return nil, err
		}
	}
	deleted, err := r.deleted(ctx)
	return append(summaries, deleted...), err
}

// deleted counts the rows of deleted_rows by place. A trigger writes them when a message is
// deleted from the outbox before it was published, or a notification from a stream that
// counts it. Both happen by hand alone, and no comparison would show them.
func (r *Results) deleted(ctx context.Context) ([]Summary, error) {
	return pgpool.Collect(ctx, r.pool, "count deleted rows", func(row pgx.CollectableRow) (s Summary, err error) {
		return s, row.Scan(&s.Group, &s.Deleted)
	}, `select place, count(*) from deleted_rows where deleted_at > now() - $1::interval group by place`, lookBack)
}

var deletedDesc = prometheus.NewDesc("reconciliation_deleted_rows",
	"Messages that were deleted before they were published, and notifications that their stream still counts, of three days.", nil, nil)

// Describe implements prometheus.Collector.
func (*Results) Describe(descs chan<- *prometheus.Desc) { descs <- deletedDesc }

// Collect implements prometheus.Collector. Without an answer of the database there is no
// figure.
func (r *Results) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	summaries, err := r.Recent(ctx)
	if err != nil {
		return
	}
	n := int64(0)
	for _, s := range summaries {
		n += s.Deleted
	}
	metrics <- prometheus.MustNewConstMetric(deletedDesc, prometheus.GaugeValue, float64(n))
}

// collectTimeout bounds how long a scrape waits for the database.
const collectTimeout = 2 * time.Second

// recentFor is how old the answer of Recent may be.
const recentFor = 5 * time.Second

// Recent is Groups for those who ask every moment.
func (r *Results) Recent(ctx context.Context) ([]Summary, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.recentUntil) {
		return r.recent, nil
	}
	summaries, err := r.Groups(ctx)
	if err == nil {
		r.recent, r.recentUntil = summaries, time.Now().Add(recentFor)
	}
	return summaries, err
}

// A Message is one that a group has not found, or that was deleted.
type Message struct {
	ID       uuid.UUID // of a notification that was deleted: its own
	Group    string    // or the place of a row that was deleted
	Key      event.Key
	State    State     // of its manifest: Waiting, Missing or Unknown
	From, To time.Time // when it was published, or deleted
	// The report of a message that was deleted before it was published.
	ReportID      *uuid.UUID
	ReportVersion int64
}

// A Position is behind a message in the list. The zero Position is before the first.
type Position struct {
	To    time.Time
	Group string
	ID    uuid.UUID
}

// A Selection selects messages that were not found.
type Selection struct {
	Group string // all if empty
	State State  // all if empty
	After Position
	Limit int
}

// Messages returns the messages that groups have not found at the last check, those
// first that were published first.
func (r *Results) Messages(ctx context.Context, s Selection) ([]Message, error) {
	var found []Message
	manifests := make(map[manifestID][]int) // indexes of found
	var m Message
	var of manifestID
	err := pgpool.ForEach(ctx, r.pool, "list messages that were not found", []any{&m.ID, &m.Group, &m.State, &m.From, &m.To, &of.epoch, &of.number, &m.Key, &m.ReportID, &m.ReportVersion}, func() error {
		if of.group = m.Group; of.number > 0 {
			manifests[of] = append(manifests[of], len(found))
		}
		found = append(found, m)
		return nil
	}, `
		select * from (
		  select id, m.consumer_group, m.state, m.starts_at, m.ends_at, m.epoch, m.number, '', null::uuid, 0
		  from reconciliation_manifests m, unnest(m.missing) as missing (id)
		  where m.received_at > now() - $1::interval and m.state <> 'complete'
		  union all
		  select id, place, 'missing', deleted_at, deleted_at, 0, 0, routing_key, report_id, report_version
		  from deleted_rows where deleted_at > now() - $1::interval
		) m (id, consumer_group, state, starts_at, ends_at)
		where ($2 = '' or consumer_group = $2) and ($3 = '' or state = $3) and (ends_at, consumer_group, id) > ($4, $5, $6)
		order by ends_at, consumer_group, id limit $7`,
		lookBack, s.Group, s.State, s.After.To, s.After.Group, s.After.ID, s.Limit)
	if err != nil {
		return nil, err
	}
	for of, indexes := range manifests {
		if err := r.name(ctx, of, found, indexes); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Close takes those of the messages that the group has not found, or that were deleted, out of
// the list and out of the counts for good, and returns how many: the operator has found out about them, and
// they do not come. One that may be on its way stays. The audit keeps the reason.
func (r *Results) Close(ctx context.Context, c Closing) (closed int, err error) {
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		found, err := pgpool.Collect(ctx, tx, "close messages", pgx.RowTo[[]uuid.UUID], `
			with concerned as (
				select epoch, number, array(select unnest(missing) intersect select unnest($2::uuid[])) as ids
				from reconciliation_manifests
				where consumer_group = $1 and state in ('missing', 'unknown') and missing && $2 and received_at > now() - $3::interval
				for update
			), changed as (
				update reconciliation_manifests m
				set closed = m.closed || c.ids, missing = array(select id from unnest(m.missing) as one (id) where id <> all (c.ids))
				from concerned c
				where m.consumer_group = $1 and m.epoch = c.epoch and m.number = c.number
				returning c.ids
			), deleted as (
				delete from deleted_rows where place = $1 and id = any($2) returning array[id]
			)
			select * from changed union all select * from deleted`, c.Group, c.Messages, lookBack)
		if err != nil {
			return err
		}
		c.Messages = slices.Concat(found...)
		if closed = len(c.Messages); closed == 0 {
			return nil
		}
		return r.audit(ctx, tx, c)
	})
	return closed, err
}

type manifestID struct {
	group         string
	epoch, number int64
}

// name fills in the routing keys of those of the messages that a manifest names. If it has
// become complete since, they have none.
func (r *Results) name(ctx context.Context, of manifestID, messages []Message, indexes []int) error {
	body, err := pgpool.Value[[]byte](ctx, r.pool, "read manifest", `
		select (select body from reconciliation_manifests where consumer_group = $1 and epoch = $2 and number = $3)`,
		of.group, of.epoch, of.number)
	if err != nil {
		return err
	}
	if body == nil {
		return nil
	}
	m, err := event.DecodeManifest(body)
	if err != nil {
		return err
	}
	keys := make(map[uuid.UUID]event.Key)
	for key, ids := range m.Messages {
		for _, id := range ids.All() {
			keys[id] = key
		}
	}
	for _, i := range indexes {
		messages[i].Key = keys[messages[i].ID]
	}
	return nil
}
