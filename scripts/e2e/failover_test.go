package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// The primary of both databases dies while people use the city, and its
// synchronous standby takes over. Whoever got no answer asks again. All that was
// accepted is shown once; the numbers of the streams go on, in the same epoch.
func TestPrimaryIsKilled(t *testing.T) {
	t.Parallel()
	const residents, before, after = 8, 200, 400 // how many reports are accepted by when
	primary := pgtest.StartServer(t)
	standby := primary.Follow()
	c := prepareStack(t)
	for db, pool := range map[migrations.Database]**pgxpool.Pool{migrations.Report: &c.reportDB, migrations.Notification: &c.notificationDB} {
		address := createReplicated(t, db, primary, standby)
		*pool = must(pgxpool.New(context.WithoutCancel(t.Context()), address))
		t.Cleanup((*pool).Close)
		for _, p := range []*process{c.report, c.notification} {
			if (p == c.report) == (db == migrations.Report) {
				p.env["DATABASE_URL"] = address
			}
		}
	}
	c.notification.start()
	c.report.start()
	c.awaitReady()
	ana, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	officials, anas := watch(t, c.signIn("Olga", "official")), watch(t, ana)

	var accepted atomic.Int64
	var mu sync.Mutex // guards the two
	var wantOfficials, wantAna []sight
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var people sync.WaitGroup
	for range residents {
		people.Go(func() {
			for ctx.Err() == nil {
				key := uuid.NewString()
				report, err := insist(t, func() (client.Report, error) {
					return ana.CreateReport(t.Context(), draft("While the primary dies"), "Idempotency-Key", key)
				})
				if err != nil {
					t.Errorf("file a report: %v", err)
					return
				}
				tally, err := insist(t, func() (client.VoteResult, error) { return ben.Vote(t.Context(), report.ID, "upvote") })
				if err != nil {
					t.Errorf("vote: %v", err)
					return
				}
				mu.Lock()
				wantOfficials = append(wantOfficials, sightOf(report))
				wantAna = append(wantAna, sight{voted, report.ID, tally.Version})
				mu.Unlock()
				accepted.Add(1)
			}
		})
	}
	eventually.True(t, "the city is in use", func() bool { return accepted.Load() >= before })
	died := time.Now()
	primary.Kill()
	standby.Promote()
	promoted, count := time.Now(), accepted.Load()
	eventually.True(t, "it goes on with the standby", func() bool { return accepted.Load() > count+residents })
	t.Logf("promoted %.1f s after the primary died, in use again %.1f s after that", promoted.Sub(died).Seconds(), time.Since(promoted).Seconds())
	eventually.True(t, "people use it for a while", func() bool { return accepted.Load() >= after })
	stop()
	people.Wait()
	officials.check(wantOfficials)
	anas.check(wantAna)
}

// createReplicated makes a migrated database on primary, and returns the URL by
// which whichever of the two is the primary is found.
func createReplicated(t *testing.T, db migrations.Database, primary, standby *pgtest.Server) string {
	t.Helper()
	name := "city_" + string(db)
	admin := must(pgx.Connect(t.Context(), primary.URL("postgres")))
	defer admin.Close(t.Context())
	must(admin.Exec(t.Context(), "create database "+name))
	if err := migrations.Up(t.Context(), primary.URL(name), db); err != nil {
		t.Fatal(err)
	}
	both, second := must(url.Parse(primary.URL(name))), must(url.Parse(standby.URL(name)))
	both.Host += "," + second.Host
	both.RawQuery = "sslmode=disable&target_session_attrs=read-write&connect_timeout=2"
	return both.String()
}

// insist asks until there is an answer that is not "later".
func insist[T any](t *testing.T, ask func() (T, error)) (T, error) {
	deadline := time.Now().Add(eventually.Patience)
	for tick := time.Tick(50 * time.Millisecond); ; {
		answer, err := ask()
		if err == nil || t.Context().Err() != nil {
			return answer, err
		}
		if status := client.StatusOf(err); status != 0 && status < http.StatusInternalServerError {
			return answer, err
		}
		if time.Now().After(deadline) {
			return answer, fmt.Errorf("not in time: %w", err)
		}
		<-tick
	}
}
