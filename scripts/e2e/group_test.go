package e2e

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	platformtopology "github.com/cityconnect/cityconnect/platform/topology"
)

// A group of someone else fails on what the services' own group takes. The
// resident is notified once and of everything; the dead letters of the other group
// are on the operators' console, and a replay reaches that group alone.
func TestAnotherGroupFailsForItself(t *testing.T) {
	t.Parallel()
	const queue, n = "queue.e2e_tally", 3
	c := startStack(t)
	ana, report := c.userOf("ana", "resident"), uuid.New()
	anas := watch(t, ana)
	if _, err := c.notificationDB.Exec(t.Context(), `create table e2e_tally (message_id text not null)`); err != nil {
		t.Fatal(err)
	}
	var repaired atomic.Bool
	cfg := consumer.Defaults()
	cfg.MaxAttempts = 2
	runner := must(group.New(cfg, group.Dependencies{
		Database: c.notificationDB, RabbitURL: c.brokerURL, ManagementURL: c.managementURL, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
	}, consumer.Group{
		Name:   "e2e-tally",
		Queues: []platformtopology.Queue{{Name: queue, Keys: []event.Key{event.VoteReceivedKey}}},
		Effect: consumer.InTx(c.notificationDB, func(ctx context.Context, tx pgx.Tx, messages []consumer.Message) error {
			for _, m := range messages {
				if _, err := tx.Exec(ctx, `insert into e2e_tally values ($1)`, m.ID); err != nil {
					return err
				}
			}
			if !repaired.Load() {
				return errors.New("not today")
			}
			return nil
		}),
	}))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run the group: %v", err)
		}
	}()
	eventually.True(t, "the group reads its queue", func() bool { return runner.Consumer.Pools()[0].Workers > 0 })

	ch := c.channel()
	var sights []sight
	var ids []string
	for version := range int64(n) {
		msg := c.message(event.VoteReceivedKey, report, ana.ID, voteBody(report, version+1))
		c.publish(ch, event.VoteReceivedKey, msg)
		sights, ids = append(sights, sight{voted, report, version + 1}), append(ids, msg.MessageId)
	}
	for _, id := range ids {
		c.awaitDeadLetter(queue, id)
	}
	count := func(sql string) (n int) {
		t.Helper()
		if err := c.notificationDB.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if tallied := count(`select count(*) from e2e_tally`); tallied != 0 {
		t.Errorf("%d effects of a group that fails, want none", tallied)
	}
	if others := count(`select count(*) from dead_letters where queue <> '` + queue + `'`); others != 0 {
		t.Errorf("%d dead letters of the other group, want none", others)
	}
	repaired.Store(true)
	operator := c.userOf("operator", "operator")
	if err := operator.Do(t.Context(), http.MethodPost, "/admin/dlq/replays", map[string]any{"selection": map[string]any{"queue": queue}}, nil); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the replayed messages have their effect", func() bool {
		return count(`select count(*) from e2e_tally`) == n && count(`select count(*) from dead_letters where state = 'resolved'`) == n
	})
	anas.check(sights)
	if told := count(`select count(*) from notifications`); told != n {
		t.Errorf("%d notifications, want %d: the retries and the replay of one group reached the other", told, n)
	}
}
