package consumer_test

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/short"
)

// lastSQL is what readers see of a report last.
const lastSQL = `
create table last_statuses (
  report_id uuid primary key,
  version bigint not null,
  effects int not null default 1,
  backwards int not null default 0 -- how often an earlier status came after a later one
)`

// showing returns the effect of showing statuses, one after another.
func showing(pool *pgxpool.Pool) consumer.Effect {
	return consumer.InTx(pool, func(ctx context.Context, tx pgx.Tx, messages []consumer.Message) error {
		for _, m := range messages {
			_, err := tx.Exec(ctx, `
				insert into last_statuses as l (report_id, version) values ($1, $2)
				on conflict (report_id) do update set version = excluded.version, effects = l.effects + 1,
				  backwards = l.backwards + (excluded.version < l.version)::int`, m.Event.About().ReportID, m.Event.About().ReportVersion)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// An unreliableEffect fails twice for each tenth message, and now and then kills its
// process before or after the commit. It spares processes while a message is in its
// second start: one that chance starts a fourth time would be a dead letter.
type unreliableEffect struct {
	consumer.Effect
	pool *pgxpool.Pool
}

func (u unreliableEffect) Apply(ctx context.Context, queue string, batch []consumer.Message) (int, error) {
	for _, m := range batch {
		hash := fnv.New32()
		_, _ = hash.Write([]byte(m.ID))
		if hash.Sum32()%10 == 0 && failure.Retries(m.Headers) < 2 {
			return 0, errTransient
		}
	}
	fate := rand.IntN(60)
	if fate == 0 {
		u.die(ctx)
	}
	seen, err := u.Effect.Apply(ctx, queue, batch)
	if fate == 1 {
		u.die(ctx)
	}
	return seen, err
}

func (u unreliableEffect) die(ctx context.Context) {
	// No start is written between the look and the death: on a busy machine that is long.
	_ = pgx.BeginFunc(ctx, u.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `lock table message_starts in share row exclusive mode`); err != nil {
			return err
		}
		var spared bool
		err := tx.QueryRow(ctx, `select exists (select from message_starts where starts > 1)`).Scan(&spared)
		if err == nil && !spared {
			die()
		}
		return err
	}) // an error spares the process
}

// statuses returns the changes of n reports, each with so many, in the order of their
// commits. Those of a report follow each other after a few others.
func statuses(h *consumertest.Harness, n, versions int, linked bool) (messages []consumertest.Message) {
	previous := make([]uuid.UUID, n)
	reports := make([]uuid.UUID, n)
	for i := range reports {
		reports[i] = uuid.New()
	}
	const near = 5
	for first := 0; first < n; first += near {
		for v := range versions {
			for i := first; i < min(first+near, n); i++ {
				m := h.Status("ann")
				m.Headers[event.RecipientHeader] = "unread"
				id := uuid.Must(uuid.NewV7())
				change := &event.StatusUpdate{
					Subject:   event.Subject{ReportID: reports[i], ReportVersion: int64(v + 2), ReportTitle: "Pothole", Timestamp: time.Now().Unix()},
					NewStatus: event.Resolved,
				}
				if linked && v > 0 {
					change.PreviousMessageID, change.PreviousStatusVersion = previous[i], int64(v+1)
				}
				previous[i] = id
				m.ID = id.String()
				m.Body, _ = json.Marshal(change) // has nothing that cannot be encoded
				messages = append(messages, m)
			}
		}
	}
	return messages
}

// Two replicas with several workers each are killed again and again, and each tenth
// message fails twice. The last status that a reader sees of a report is the present
// one, and none comes after a later one. Without the links between the messages, as
// earlier versions send them, they do: so the test sees what it looks for.
func TestLastStatusIsThePresentOne(t *testing.T) {
	t.Parallel()
	reports := short.Count(60, 400)
	const versions = 5
	for _, linked := range []bool{true, false} {
		name := map[bool]string{true: "linked", false: "not linked"}[linked]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := consumertest.New(t, pgtest.Notification(t))
			if _, err := h.Pool.Exec(t.Context(), lastSQL); err != nil {
				t.Fatal(err)
			}
			_, stop := h.Start()
			h.WaitSubscribed(1)
			stop()
			deaths := keepAlive(t, h, "order", "")
			other := keepAlive(t, h, "order", "")
			h.Publish(statuses(h, reports, versions, linked)...)
			h.WaitEffects(reports * versions)
			stale := h.Count(`select count(*) from last_statuses where version <> $1`, versions+1)
			backwards := h.Count(`select sum(backwards) from last_statuses`)
			t.Logf("%d reports, %d statuses each, processes killed %d times: %d end on a stale status, %d statuses came after later ones",
				reports, versions, deaths.Load()+other.Load(), stale, backwards)
			if n := h.Count(`select sum(effects) from last_statuses`); n != reports*versions {
				t.Errorf("%d effects, want %d", n, reports*versions)
			}
			switch {
			case linked && stale+backwards > 0:
				t.Errorf("%d reports end on a stale status, %d statuses came after later ones; want none", stale, backwards)
			case !linked && stale == 0:
				t.Error("no report ends on a stale status: the test does not test what it says")
			}
		})
	}
}

// One that is linked to a message that will not come goes ahead: because it was parked
// long enough, because the other is a dead letter, or because it was made before
// consumers remember. One whose previous message comes later waits for it.
func TestMissingPreviousMessage(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start(consumertest.WithConfig(func(c *consumer.Config) { c.Workers = 2 }))
	h.WaitSubscribed(2)
	linked := func(previous uuid.UUID, version int64) consumertest.Message {
		m := h.Status("ann")
		var change event.StatusUpdate
		if err := json.Unmarshal(m.Body, &change); err != nil {
			t.Fatal(err)
		}
		change.ReportVersion, change.PreviousMessageID, change.PreviousStatusVersion = 9, previous, version
		m.Body, _ = json.Marshal(&change) // has nothing that cannot be encoded
		return m
	}
	count := func(m consumertest.Message) int {
		return h.Count(`select count(*) from effects where message_id = $1`, m.ID)
	}
	letter := uuid.Must(uuid.NewV7())
	_, err := h.Pool.Exec(t.Context(), `
		insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at)
		values ($1, $2, 'report.status.updated', '', '{}', '{}', 'permanent', '', '', now(), now())`,
		h.Topology.Queue(event.StatusUpdatedKey), letter.String())
	if err != nil {
		t.Fatal(err)
	}
	longAgo := uuid.Must(uuid.NewV7())
	copy(longAgo[:6], make([]byte, 6)) // which is its time
	tired := linked(uuid.Must(uuid.NewV7()), 3)
	tired.Headers[failure.WaitedHeader] = int64(15 * time.Minute / time.Millisecond)
	goAhead := []consumertest.Message{tired, linked(letter, 3), linked(longAgo, 3), linked(uuid.Must(uuid.NewV7()), 1)}
	first := h.Status("ann")
	waits := linked(uuid.MustParse(first.ID), 3)
	h.Publish(append([]consumertest.Message{waits}, goAhead...)...)
	for _, m := range goAhead {
		h.EventuallyEqual("effects of a message that goes ahead", 1, func() int { return count(m) })
	}
	h.EventuallyEqual("messages that wait", 1, func() int { return h.Count(`select count(*) from delayed_messages`) })
	h.EventuallyEqual("how often the message was parked", 2, func() int { return min(2, h.Metric("consumer_messages_early_total")) })
	if n := count(waits); n != 0 {
		t.Errorf("%d effects before the previous message's, want none", n)
	}
	h.Publish(first)
	h.WaitEffects(len(goAhead) + 2)
	h.CheckEffects(len(goAhead) + 2)
	if n := h.Metric("consumer_messages_overtaking_total"); n != 1 {
		t.Errorf("%d messages are counted that went ahead after a wait, want 1", n)
	}
	var order []string
	rows, err := h.Pool.Query(t.Context(), `select message_id from effects where message_id in ($1, $2) order by at`, first.ID, waits.ID)
	if err == nil {
		order, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil || len(order) != 2 || order[1] != waits.ID {
		t.Errorf("effects %v (error %v), want the one that waited last", order, err)
	}
	letters, _ := h.Inspect(h.Topology.DeadLetterQueue(h.Topology.Queue(event.StatusUpdatedKey)))
	if letters.Messages != 0 {
		t.Errorf("%d dead letters, want none", letters.Messages)
	}
}
