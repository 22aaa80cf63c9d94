package consumer_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

// insertSQL returns a row if the effect is there.
const insertSQL = `insert into each_test (n) select $1 where $1 > 0 returning n`

func insert(n int) consumer.Statement { return consumer.Statement{SQL: insertSQL, Args: []any{n}} }

func anyRow(_ int, rows pgx.Rows) (bool, error) {
	all, err := pgx.CollectRows(rows, pgx.RowTo[int])
	return len(all) > 0, err
}

// A statement that fails takes back nothing of the others, and its error is known at once.
func TestEach(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	if _, err := pool.Exec(t.Context(), `create table each_test (n int unique)`); err != nil {
		t.Fatal(err)
	}
	var failed []int
	statements := []consumer.Statement{insert(1), insert(1), insert(0), {}, insert(2), insert(2), insert(2), insert(3)}
	executed, err := consumer.Each(t.Context(), pool, statements, anyRow, func(i int, err error) {
		failed = append(failed, i)
		if failure.Classify(err) != failure.Permanent {
			t.Errorf("the error of statement %d is %v, want that of its row", i, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []bool{true, false, false, false, true, false, false, true}; !slices.Equal(executed, want) {
		t.Errorf("executed are %v, want %v", executed, want)
	}
	if want := []int{1, 5, 6}; !slices.Equal(failed, want) {
		t.Errorf("failed are %v, want %v", failed, want)
	}
	rows, err := pool.Query(t.Context(), `select n from each_test order by n`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pgx.CollectRows(rows, pgx.RowTo[int]); err != nil || !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("rows are %v (error %v), want 1, 2, 3", got, err)
	}
}

// Somebody who holds a lock may wait for what was executed: the rest is left to others.
func TestEachGivesWay(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	if _, err := pool.Exec(t.Context(), `create table each_test (n int unique)`); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginFunc(t.Context(), pool, func(other pgx.Tx) error {
		if _, err := other.Exec(t.Context(), `insert into each_test (n) values (2)`); err != nil {
			return err
		}
		executed, err := consumer.Each(t.Context(), pool, []consumer.Statement{insert(1), insert(2), insert(3)}, anyRow,
			func(i int, err error) { t.Errorf("statement %d is said to fail: %v", i, err) })
		if want := []bool{true, false, false}; err != nil || !slices.Equal(executed, want) {
			t.Errorf("executed are %v (error %v), want %v", executed, err, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An eachEffect fails for messages in the database, where a statement for each does not
// harm the others.
type eachEffect struct {
	*failingEffect
	h   *consumertest.Harness
	bad map[string]bool
}

func (e eachEffect) ApplyEach(ctx context.Context, queue string, batch []consumer.Message, failed func(int, error)) ([]bool, error) {
	statements := make([]consumer.Statement, len(batch))
	for i, m := range batch {
		statements[i] = consumer.Statement{SQL: `
			with noted as (insert into processed_messages (consumer, message_id) values ($1, $2) on conflict do nothing returning message_id)
			insert into effects (queue, message_id) select $1, message_id from noted where 1 / $3::int = 1 returning 1`, Args: []any{queue, m.ID, 1}}
		if e.bad[m.ID] {
			statements[i].Args[2] = 0
		}
	}
	return consumer.Each(ctx, e.h.Pool, statements, anyRow, failed)
}

// Of batches that fail, each message has its effect once, or is a dead letter.
func TestFailingMessagesAreIsolatedOneByOne(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	_, stop := h.Start() // declares the queues
	h.WaitSubscribed(1)
	stop()
	effect := eachEffect{h: h, bad: make(map[string]bool)}
	effect.failingEffect = &failingEffect{Effect: consumertest.Effect(h.Pool), fail: func(batch []consumer.Message) error {
		for _, m := range batch {
			if effect.bad[m.ID] {
				return &pgconn.PgError{Code: "22012"}
			}
		}
		return nil
	}}
	const messages, every = 60, 6
	for i := range messages {
		m := h.Vote("alice")
		effect.bad[m.ID] = i%every == 0
		h.Publish(m)
	}
	h.Start(consumertest.WithEffect(effect))
	h.WaitEffects(messages - messages/every)
	for _, letter := range h.DeadLetters(event.VoteReceivedKey, messages/every) {
		if !effect.bad[letter.MessageId] {
			t.Errorf("%s is a dead letter, and has not failed", letter.MessageId)
		}
	}
	h.CheckEffects(messages - messages/every)
}
