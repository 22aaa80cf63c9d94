package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// Both databases are lost and restored from backups of different moments. What
// is lost is what docs/backup.md says, and no screen shows anything twice, nor
// takes something old for something new.
func TestRestoreAtDifferentMoments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// what happened until the backup of each
		reports, notifications int
	}{
		{"the reports are older", 1, 2},
		{"the notifications are older", 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := startStack(t)
			c.loseAndRestore(tt.reports, tt.notifications, func(part int) {
				if part == tt.reports {
					c.dump(c.reportDB, "reports")
				}
				if part == tt.notifications {
					c.dump(c.notificationDB, "notifications")
				}
			}, func() {
				c.restore(c.reportDB, "reports")
				c.restore(c.notificationDB, "notifications")
			})
		})
	}
}

// Each database is a server of its own here, whose log is archived. Both are lost,
// and recovered to different moments of the day, which are named in each way that
// PostgreSQL knows. Neither service would notice: the database is the same as
// before, so that an operator tells both.
func TestRecoverToDifferentMoments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                   string
		reports, notifications moment
	}{
		{"the reports are older", moment{1, "recovery_target_time"}, moment{2, "recovery_target_lsn"}},
		{"the notifications are older", moment{2, "recovery_target_lsn"}, moment{1, "recovery_target_xid"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reports, notifications := startArchived(t, migrations.Report), startArchived(t, migrations.Notification)
			c := prepareStackOn(t, rabbittest.Vhost(t), rabbittest.SharedManagementURL(t), reports.pool, notifications.pool)
			c.start()
			reports.server.BaseBackup()
			notifications.server.BaseBackup()
			c.loseAndRestore(tt.reports.part, tt.notifications.part, func(part int) {
				reports.note(t, part, tt.reports)
				notifications.note(t, part, tt.notifications)
			}, func() {
				reports.recover(t)
				notifications.recover(t)
				c.command(c.report, "restored")
				c.command(c.notification, "restored")
			})
		})
	}
}

// A moment is the end of a part of the day, and how it is named.
type moment struct {
	part   int
	target string // a setting of PostgreSQL
}

// present has the query that names the present moment, by setting.
var present = map[string]string{
	"recovery_target_time": `select clock_timestamp()::text`,
	"recovery_target_xid":  `select pg_current_xact_id()::text`,
	"recovery_target_lsn":  `select pg_current_wal_insert_lsn()::text`,
}

// An archived is a server with one database, and the moment to which it is to be
// recovered.
type archived struct {
	server *pgtest.Server
	pool   *pgxpool.Pool
	target string
}

func startArchived(t *testing.T, db migrations.Database) *archived {
	t.Helper()
	a := &archived{server: pgtest.StartServerWithArchive(t)}
	var err error
	if a.pool, err = pgxpool.New(t.Context(), a.server.Create(db)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.pool.Close)
	return a
}

// note remembers the moment once it has come.
func (a *archived) note(t *testing.T, part int, m moment) {
	t.Helper()
	if part != m.part {
		return
	}
	var now string
	if err := a.pool.QueryRow(t.Context(), present[m.target]).Scan(&now); err != nil {
		t.Fatal(err)
	}
	a.target = m.target + "=" + now
}

// recover loses the server, once the archive has its log, and brings it back to
// the moment.
func (a *archived) recover(t *testing.T) {
	t.Helper()
	var segment string
	if err := a.pool.QueryRow(t.Context(), `select pg_walfile_name(pg_switch_wal())`).Scan(&segment); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the log is archived", func() bool {
		var done bool
		err := a.pool.QueryRow(t.Context(), `select coalesce(left(last_archived_wal, 24) >= $1, false) from pg_stat_archiver`, segment).Scan(&done)
		return err == nil && done
	})
	a.server.Kill()
	a.server.Recover(a.target)
	a.pool.Reset() // its connections were those of the lost server
}

// loseAndRestore plays three parts of a town's day, calls keep after each, and has
// lose take both databases back, each to the end of one of them. Both services are
// down while that is done.
func (c *stack) loseAndRestore(reports, notifications int, keep func(part int), lose func()) {
	c.t.Helper()
	t := c.t
	began := time.Now()
	ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	anas, officials := watch(t, ana), watch(t, olga)
	first := file(t, ana, "Filed first")
	toAna, toOfficials := make([][]sight, 4), make([][]sight, 4) // by part, from 1
	toOfficials[1] = append(toOfficials[1], sightOf(first))
	var filed []client.Report // in each part one
	shown, seen := 0, 1
	for part := 1; part <= 3; part++ {
		r := file(t, ana, fmt.Sprint("Filed in part ", part))
		filed = append(filed, r)
		toOfficials[part] = append(toOfficials[part], sightOf(r))
		toAna[part] = append(toAna[part], vote(t, ben, first, []string{"upvote", "downvote"}[part%2]), vote(t, ben, r, "upvote"),
			move(t, olga, first, []string{"in_progress", "pending", "in_progress"}[part-1], ""))
		shown, seen = shown+3, seen+1
		anas.await(shown)
		officials.await(seen)
		c.checkRelayDone()
		keep(part)
	}
	newest := must(ana.Report(t.Context(), first.ID)).Version

	c.report.kill()
	c.notification.kill()
	lose()
	c.start()

	// Every screen is asked to start over, and lists what there is.
	for _, s := range []*screen{anas, officials} {
		eventually.True(t, "the screen starts over", func() bool { return s.ledger.Count().Resets > 0 })
	}
	compare(t, "Ana's list after the restore", anas.listed(), slices.Concat(toAna[1:notifications+1]...))
	compare(t, "the officials' list after the restore", officials.listed(), slices.Concat(toOfficials[1:notifications+1]...))

	// Events that the reports database announced and the notifications database lost
	// are notified again, and nothing else is, even if that is asked for twice.
	for range 2 {
		c.command(c.report, "republish", "-since", began.Add(-time.Minute).Format(time.RFC3339))
	}
	kept := max(reports, notifications)
	for _, check := range []struct {
		who    string
		screen *screen
		want   [][]sight
	}{{"Ana", anas, toAna}, {"the officials", officials, toOfficials}} {
		want := slices.Concat(check.want[1 : kept+1]...)
		eventually.True(t, check.who+" has what is kept", func() bool { return len(check.screen.listed()) >= len(want) })
		c.checkRelayDone()
		compare(t, check.who+"'s list in the end", check.screen.listed(), want)
		lost := len(slices.Concat(check.want[kept+1:]...))
		t.Logf("%s: %d notifications kept, %d lost", check.who, len(want), lost)
	}
	for part, r := range filed {
		_, err := ana.Report(t.Context(), r.ID)
		if lost := client.StatusOf(err) == 404; lost != (part+1 > reports) {
			t.Errorf("the report of part %d: %v; the backup is of part %d", part+1, err, reports)
		}
	}

	// A change after it is newer than everything that was shown.
	last := vote(t, c.signIn("Cyn", "resident"), first, "upvote")
	if last.version <= newest {
		t.Errorf("the next change has version %d, the screens have shown %d", last.version, newest)
	}
	eventually.True(t, "it is shown", func() bool { return slices.Contains(anas.all(), last) })
	for who, s := range map[string]*screen{"Ana": anas, "the officials": officials} {
		if got := s.ledger.Count(); got.Doubled+got.Missing+got.OutOfOrder != 0 {
			t.Errorf("%s: the stream's numbers: %+v", who, got)
		}
		times := make(map[sight]int) // since the screen started over, live and listed
		for _, n := range s.listed() {
			if times[n]++; times[n] > 1 {
				t.Errorf("%s: %v is listed %d times", who, n, times[n])
			}
		}
	}
}

// checkRelayDone returns when everything is published and handled.
func (c *stack) checkRelayDone() {
	c.t.Helper()
	eventually.True(c.t, "nothing is on its way", func() bool {
		var waiting int
		err := c.reportDB.QueryRow(c.t.Context(), `select count(*) from outbox_messages where status <> 'published'`).Scan(&waiting)
		for _, q := range c.queues() {
			waiting += q.Messages
		}
		return err == nil && waiting == 0
	})
}

// dump makes a backup of db, as docs/backup.md says.
func (c *stack) dump(db *pgxpool.Pool, name string) {
	c.t.Helper()
	c.run("pg_dump", "--format=custom", "--file="+c.backup(name), db.Config().ConnString())
}

// restore puts the backup into db.
func (c *stack) restore(db *pgxpool.Pool, name string) {
	c.t.Helper()
	c.run("pg_restore", "--clean", "--if-exists", "--no-owner", "--exit-on-error", "--dbname="+db.Config().ConnString(), c.backup(name))
	db.Reset() // its connections have prepared statements on tables that are gone
}

// backup returns the file of a backup of this test.
func (c *stack) backup(name string) string {
	if c.backups == "" {
		c.backups = c.t.TempDir()
	}
	return filepath.Join(c.backups, name+".dump")
}

func (c *stack) run(name string, args ...string) {
	c.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // where Debian has it
		if len(found) == 0 {
			c.t.Fatalf("%s is not installed", name)
		}
		path = found[len(found)-1]
	}
	if out, err := exec.CommandContext(c.t.Context(), path, args...).CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// command runs a command of a service's program.
func (c *stack) command(p *process, args ...string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), p.path, args...)
	for name, value := range p.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%s %v: %v\n%s", filepath.Base(p.path), args, err, out)
	}
}
