package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/scripts/internal/client"
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
			restoreAt(t, tt.reports, tt.notifications)
		})
	}
}

// restoreAt plays three parts of a town's day. Each database has a backup from
// the end of one of them.
func restoreAt(t *testing.T, reports, notifications int) {
	c := startStack(t)
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
		if part == reports {
			c.dump(c.reportDB, "reports")
		}
		if part == notifications {
			c.dump(c.notificationDB, "notifications")
		}
	}
	newest := must(ana.Report(t.Context(), first.ID)).Version

	c.report.kill()
	c.notification.kill()
	c.restore(c.reportDB, "reports")
	c.restore(c.notificationDB, "notifications")
	c.notification.start()
	c.report.start()
	c.awaitReady()

	// Every screen is told to begin anew, and lists what there is.
	for _, s := range []*screen{anas, officials} {
		eventually(t, "the screen begins anew", func(context.Context) bool { return s.ledger.Count().Resets > 0 })
	}
	compare(t, "Ana's list after the restore", anas.listed(), slices.Concat(toAna[1:notifications+1]...))
	compare(t, "the officials' list after the restore", officials.listed(), slices.Concat(toOfficials[1:notifications+1]...))

	// What the reports database announced and the notifications database lost is
	// told again, and nothing else, also if that is asked for twice.
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
		eventually(t, check.who+" has what is kept", func(context.Context) bool { return len(check.screen.listed()) >= len(want) })
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
	eventually(t, "it is shown", func(context.Context) bool { return slices.Contains(anas.all(), last) })
	for who, s := range map[string]*screen{"Ana": anas, "the officials": officials} {
		if got := s.ledger.Count(); got.Doubled+got.Missing+got.OutOfOrder != 0 {
			t.Errorf("%s: the stream's numbers: %+v", who, got)
		}
		times := make(map[sight]int) // since the screen began anew, live and listed
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
	eventually(c.t, "nothing is on its way", func(ctx context.Context) bool {
		var waiting int
		err := c.reportDB.QueryRow(ctx, `select count(*) from outbox_messages where status <> 'published'`).Scan(&waiting)
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
