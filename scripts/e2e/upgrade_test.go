package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// nextMigrations are what the release after this one adds. They take their time,
// as those of a large table do, and change tables that every request uses.
var nextMigrations = map[migrations.Database]string{
	migrations.Report: `
		select pg_sleep(2);
		alter table reports add column next_release boolean not null default false;
		alter table outbox_messages add column next_release boolean not null default false;
		create index outbox_messages_next_release on outbox_messages (next_release);`,
	migrations.Notification: `
		select pg_sleep(2);
		alter table notifications add column next_release boolean not null default false;
		create index notifications_next_release on notifications (next_release);`,
}

// The next release goes out in the middle of the day, and is taken back: under
// load, the schema is migrated, and the replicas are replaced one by one, by
// those that need the new schema and then by those of today again. Nothing is
// lost, nothing is shown twice, and no client is refused anything. No other test runs beside
// it: it asks as fast as it can, and starves the broker of the others.
func TestRollingUpgrade(t *testing.T) {
	next := buildNextRelease(t)
	rollOut(prepareStack(t), binaries, next)
}

// A city that has the latest release takes today's programs in the same way, and goes back.
// It runs alone, too.
func TestUpgradeFromRelease(t *testing.T) {
	release, today := buildRelease(t), t.TempDir()
	mustRun(t, buildCommand(today, append(slices.Clone(services), "./migrations/cmd/migrate")...))
	c := prepareStack(t)
	for db, pool := range c.databases() {
		if _, err := pool.Exec(t.Context(), `drop schema public cascade; create schema public`); err != nil {
			t.Fatal(err)
		}
		migrate(t, release, db, pool.Config().ConnString())
	}
	rollOut(c, release, today)
}

// rollOut starts the programs in the folder before on a stack, upgrades it to those in
// next under load, and goes back.
func rollOut(c *stack, before, next string) {
	t := c.t
	t.Helper()
	ports := gatewaytest.FreePorts(t, 4)
	c.report.env["HTTP_ADDR"], c.notification.env["HTTP_ADDR"] = ports[0], ports[1]
	reports := []*process{c.report, newProcess(t, "report-service", with(c.report.env, "HTTP_ADDR", ports[2]))}
	streams := []*process{c.notification, newProcess(t, "notification-service", with(c.notification.env, "HTTP_ADDR", ports[3]))}
	workers := []*process{c.worker, c.photo}
	for _, p := range slices.Concat(streams, workers, reports) {
		p.path = filepath.Join(before, filepath.Base(p.path))
		p.start()
		c.awaitReplica(p)
	}
	c.awaitConsumers()
	gateway := gatewaytest.Start(t, []string{ports[0], ports[2]}, []string{ports[1], ports[3]}, "GATEWAY_LIMITS", "off")
	city := client.New(gateway.URL)
	t.Cleanup(city.CloseIdle)

	load := c.startDay(city)
	load.await(100)
	watching, watched := c.watchReadiness(slices.Concat(reports, streams))
	for db, pool := range c.databases() {
		migrate(t, next, db, pool.Config().ConnString())
	}
	load.await(100)
	watching()
	if unready := <-watched; unready > 0 {
		t.Errorf("replicas with a schema newer than their own were unready %d times", unready)
	}

	for _, release := range []struct {
		name, programs string
		replicas       []*process
	}{
		{"the next release", next, slices.Concat(streams, workers, reports)}, // in the order of docs/upgrading.md
		{"back", before, slices.Concat(reports, workers, streams)},
	} {
		for _, p := range release.replicas {
			if code, _ := p.terminate(); code != 0 {
				t.Errorf("%s: %s ended with %d, want 0", release.name, filepath.Base(p.path), code)
			}
			p.path = filepath.Join(release.programs, filepath.Base(p.path))
			p.start()
			c.awaitReplica(p)
			load.await(50)
		}
		t.Logf("%s: %d requests so far", release.name, load.requests.Load())
	}
	load.stop()
	load.check(c)
}

// mustRun runs a command to its end.
func mustRun(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// databases returns the databases of the stack.
func (c *stack) databases() map[migrations.Database]*pgxpool.Pool {
	return map[migrations.Database]*pgxpool.Pool{migrations.Report: c.reportDB, migrations.Notification: c.notificationDB}
}

// buildRelease builds the programs of the latest release, and returns their folder. A
// clone without tags has its commit.
func buildRelease(t *testing.T) string {
	t.Helper()
	git := func(args ...string) string {
		out, _ := exec.Command("git", slices.Concat([]string{"-C", root()}, args)...).Output() // empty without one
		return strings.TrimSpace(string(out))
	}
	release := git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
	if release == "" {
		release = git("log", "-1", "--format=%H", "--grep=^release: [0-9]")
	}
	if release == "" {
		t.Skip("the history of this clone has no release")
	}
	sources, programs := t.TempDir(), t.TempDir()
	mustRun(t, exec.Command("sh", "-c", `git -C "$1" archive "$2" | tar -x -C "$3"`, "sh", root(), release, sources))
	build := buildCommand(programs, append(slices.Clone(services), "./migrations/cmd/migrate")...)
	build.Dir = sources
	mustRun(t, build)
	t.Logf("the release is %s", release)
	return programs
}

// buildNextRelease builds the programs of today with one more migration for each
// database, and returns their folder. The tree stays as it is: the compiler is
// told of files that are elsewhere.
func buildNextRelease(t *testing.T) string {
	t.Helper()
	dir, replace := t.TempDir(), make(map[string]string)
	for db, up := range nextMigrations {
		newest, err := migrations.Newest(db)
		if err != nil {
			t.Fatal(err)
		}
		for suffix, sql := range map[string]string{"up.sql": up, "down.sql": "select 1;"} {
			name := fmt.Sprintf("%04d_next_release.%s", newest+1, suffix)
			file := filepath.Join(dir, string(db)+name)
			if err := os.WriteFile(file, []byte(sql), 0o600); err != nil {
				t.Fatal(err)
			}
			replace[filepath.Join(root(), "migrations", string(db), name)] = file
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, must(json.Marshal(map[string]any{"Replace": replace})), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, buildCommand(dir, slices.Concat([]string{"-overlay", overlay}, services, []string{"./migrations/cmd/migrate"})...))
	return dir
}

// migrate does what docs/upgrading.md says: a migration that waits too long for a
// lock is run again.
func migrate(t *testing.T, programs string, db migrations.Database, url string) {
	t.Helper()
	eventually.True(t, "the "+string(db)+" database is migrated", func() bool {
		cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "migrate"), "up", "-database", string(db))
		cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
		out, err := cmd.CombinedOutput()
		t.Logf("migrate: %s", out)
		return err == nil
	})
}

// awaitReplica returns when the replica is ready for all it does.
func (c *stack) awaitReplica(p *process) {
	c.t.Helper()
	eventually.True(c.t, filepath.Base(p.path)+" is ready", func() bool {
		status, checks := c.readiness(p)
		for _, check := range checks {
			if check != "up" {
				return false
			}
		}
		return status == http.StatusOK
	})
}

// watchReadiness asks replicas again and again whether their schema is as they
// need it, until stop is called. The channel then has how often it did not become so.
func (c *stack) watchReadiness(replicas []*process) (stop func(), unready <-chan int) {
	ctx, cancel := context.WithCancel(c.t.Context())
	count := make(chan int, 1)
	go func() {
		n := 0
		for ctx.Err() == nil {
			for _, p := range replicas {
				if !c.schemaComesUp(p) {
					n++
				}
			}
			select { // there is no event to wait for
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
		count <- n
	}()
	return cancel, count
}

// schemaComesUp reports whether a replica is content with its schema. A probe that a
// busy machine answers too late says nothing; one that refuses the schema goes on
// to do so.
func (c *stack) schemaComesUp(p *process) bool {
	for began := time.Now(); time.Since(began) < time.Minute; {
		if _, checks := c.readiness(p); checks["schema"] == "up" {
			return true
		}
	}
	return false
}

// A day is what residents and officials do while a release goes out. Everything
// has to succeed at the first try.
type day struct {
	t              *testing.T
	requests       atomic.Int64
	ana, officials *screen
	workers        sync.WaitGroup
	stop           func()
}

// startDay opens the screens of Ana and of an official, and begins: Ana files,
// others vote on a report of hers, officials move two others, all of them read.
func (c *stack) startDay(city *client.Client) *day {
	c.t.Helper()
	signIn := func(name, role string) *client.Client {
		user, err := city.SignIn(c.t.Context(), name, role, "")
		if err != nil {
			c.t.Fatalf("sign in %s: %v", name, err)
		}
		return user
	}
	ana, olga := signIn("Ana", "resident"), signIn("Olga", "official")
	d := &day{t: c.t, ana: watch(c.t, ana), officials: watch(c.t, olga)}
	ctx, cancel := context.WithCancel(c.t.Context())
	d.stop = func() { cancel(); d.workers.Wait() }
	c.t.Cleanup(d.stop)

	voted := file(c.t, ana, "Dark crossing")
	for range 2 {
		d.work(ctx, "file a report", func(int) error {
			_, err := ana.CreateReport(c.t.Context(), draft("Under way"), "Idempotency-Key", uuid.NewString())
			return err
		})
		voter := signIn("Voter", "resident")
		d.work(ctx, "vote", func(i int) error {
			_, err := voter.Vote(c.t.Context(), voted.ID, []string{"upvote", "downvote"}[i%2])
			return err
		})
		moved := file(c.t, ana, "Broken bench")
		d.work(ctx, "change a status", func(i int) error {
			_, err := olga.SetStatus(c.t.Context(), moved.ID, []string{"in_progress", "pending"}[i%2], "")
			return err
		})
	}
	d.work(ctx, "read", func(i int) error {
		if i%2 == 0 {
			_, err := ana.Report(c.t.Context(), voted.ID)
			return err
		}
		_, err := ana.Notifications(c.t.Context(), "", 20)
		return err
	})
	return d
}

// work makes one request after the other until ctx ends. What began is finished.
func (d *day) work(ctx context.Context, what string, request func(int) error) {
	d.workers.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := request(i); err != nil {
				d.t.Errorf("%s: %v", what, err)
			}
			d.requests.Add(1)
		}
	})
}

// await returns after n more requests.
func (d *day) await(n int64) {
	d.t.Helper()
	goal := d.requests.Load() + n
	eventually.True(d.t, fmt.Sprintf("%d more requests", n), func() bool { return d.requests.Load() >= goal })
}

// check proves that everything that was accepted is shown, each once.
func (d *day) check(c *stack) {
	d.t.Helper()
	d.officials.check(c.announced(created))
	d.ana.check(slices.Concat(c.announced(voted), c.announced(moved)))
	d.t.Logf("%d requests", d.requests.Load())
}
