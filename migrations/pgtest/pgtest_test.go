package pgtest_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
)

// Two tests that write the same thing must not see each other.
func TestEachTestOwnsItsDatabase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Report(t)
			_, err := pool.Exec(t.Context(), `insert into categories (id, name) values (99, 'only here')`)
			if err != nil {
				t.Errorf("insert: %v; want a database of this test alone", err)
			}
		})
	}
}

func TestServerKeepsDataThroughKill(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	pool, err := pgxpool.New(t.Context(), server.Create(migrations.Notification))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), `insert into streams (name, epoch) values ('user:a', 'e')`); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := pool.Ping(t.Context()); err == nil {
		t.Error("the server answers after Kill")
	}
	server.Start()
	var got int
	if err := pool.QueryRow(t.Context(), `select count(*) from streams`).Scan(&got); err != nil || got != 1 {
		t.Errorf("after restart: %d rows, error %v; want 1", got, err)
	}
}

func TestPausedServerAnswersAfterResume(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	pool, err := pgxpool.New(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	answered := make(chan error, 1)
	go func() { answered <- pool.Ping(t.Context()) }()
	select {
	case err := <-answered:
		t.Errorf("a paused server answered (error %v)", err)
	case <-time.After(100 * time.Millisecond): // time in which an unpaused one would have answered
	}
	server.Resume()
	if err := <-answered; err != nil {
		t.Errorf("after Resume: %v", err)
	}
}
