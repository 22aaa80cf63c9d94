package devserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// postgresAccount is the name that distributions give to PostgreSQL's account.
const postgresAccount = "postgres"

// A Postgres is a server of its own.
type Postgres struct {
	Dir      string // all of it is the server's; Prepare makes it the real path
	Port     int
	Password string   // the superuser's; without one everyone on this machine is trusted
	Settings []string // further ones, as name=value
	TLS      TLS
	// Archive makes the server keep its whole log in a folder, so that
	// BaseBackup and Recover bring it back to any moment.
	Archive bool
}

// PostgresPrograms returns the folder of the newest PostgreSQL that is installed.
func PostgresPrograms() (string, error) {
	var folders []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"} {
		found, _ := filepath.Glob(pattern) // its only error is a wrong pattern
		folders = append(folders, found...)
	}
	slices.SortFunc(folders, func(a, b string) int { return major(b) - major(a) })
	return find("initdb", folders...)
}

var number = regexp.MustCompile(`\d+`)

func major(folder string) int {
	version, _ := strconv.Atoi(number.FindString(folder)) // none counts as the oldest
	return version
}

// Prepare makes the folder and an empty cluster in it, unless they are there, and
// ends the remaining processes of a server whose main process was killed.
func (p *Postgres) Prepare(ctx context.Context) error {
	owner, err := folder(&p.Dir, postgresAccount)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(p.data(), "PG_VERSION")); err == nil {
		return p.endOrphans(ctx)
	}
	// Made beside its place: one that was interrupted is never taken for whole.
	making := p.data() + ".making"
	args := []string{"--pgdata=" + making, "--username=" + Superuser, "--encoding=UTF8", "--locale=" + locale(ctx), "--no-sync"}
	if p.Password == "" {
		args = append(args, "--auth=trust")
	} else {
		file := filepath.Join(p.Dir, "password")
		if err := os.WriteFile(file, []byte(p.Password+"\n"), 0o600); err != nil {
			return err
		}
		defer os.Remove(file) //nolint:errcheck // the folder is closed to others
		args = append(args, "--auth=scram-sha-256", "--pwfile="+file)
	}
	if err := errors.Join(os.RemoveAll(making), p.TLS.write(p.Dir), p.makeArchive(), give(p.Dir, owner)); err != nil {
		return err
	}
	if err := execute(p.program(ctx, "initdb", args...)); err != nil {
		return err
	}
	return os.Rename(making, p.data())
}

// PrepareStandby makes the folder with a copy of primary, which runs, and which
// the server will follow from its start on.
func (p *Postgres) PrepareStandby(ctx context.Context, primary *Postgres) error {
	owner, err := folder(&p.Dir, postgresAccount)
	if err != nil {
		return err
	}
	if err := give(p.Dir, owner); err != nil {
		return err
	}
	return execute(p.program(ctx, "pg_basebackup", "--pgdata="+p.data(), "--checkpoint=fast", "--write-recovery-conf", "--no-sync", "--dbname="+
		fmt.Sprintf("host=127.0.0.1 port=%d user=%s password='%s' sslmode=disable", primary.Port, Superuser, primary.Password)))
}

// locale is one that sorts by code points, in UTF-8 where there is one.
func locale(ctx context.Context) string {
	known, _ := exec.CommandContext(ctx, "locale", "-a").Output() // not every system has it
	if regexp.MustCompile(`(?im)^c\.utf-?8$`).Match(known) {
		return "C.UTF-8"
	}
	return "C"
}

// Command returns the prepared server, to be started in the foreground.
func (p *Postgres) Command() (*exec.Cmd, error) {
	args := []string{"-D", p.data()}
	settings := append([]string{
		"port=" + strconv.Itoa(p.Port), "listen_addresses=127.0.0.1", "unix_socket_directories=", "logging_collector=off",
	}, p.Settings...)
	settings = append(settings, p.archiving()...)
	if p.TLS.Certificate != nil {
		settings = append(settings, "ssl=on",
			"ssl_cert_file="+filepath.Join(p.Dir, certificateFile), "ssl_key_file="+filepath.Join(p.Dir, keyFile))
	}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return p.program(context.Background(), "postgres", args...)
}

// Ready returns nil once the server accepts connections.
func (p *Postgres) Ready(ctx context.Context) error {
	cmd, err := p.program(ctx, "pg_isready", "--quiet", "--host=127.0.0.1", "--port="+strconv.Itoa(p.Port))
	if err != nil {
		return err
	}
	cmd.Dir = "/" // the server's own may still be in the making
	return cmd.Run()
}

// URL returns the superuser's URL of a database.
func (p *Postgres) URL(database string) string {
	password := ""
	if p.Password != "" {
		password = ":" + p.Password
	}
	return fmt.Sprintf("postgres://%s%s@127.0.0.1:%d/%s?sslmode=disable", Superuser, password, p.Port, database)
}

// Processes lists the server's processes, its workers included: all that work
// in its folder. Each is a session of its own, so that signalling the process
// group would miss them. There are none where the system has no /proc.
func (p *Postgres) Processes() []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // its only error is a wrong pattern
	for _, link := range links {
		if folder, err := os.Readlink(link); err == nil && folder == p.data() {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2]) // the pattern has digits
			pids = append(pids, pid)
		}
	}
	return pids
}

// orphanTime is what workers need to notice that their main process is gone.
// One in the middle of a long query does not notice before its end.
const orphanTime = 5 * time.Second

// endOrphans prepares the start of a server whose main process was killed:
// PostgreSQL refuses it while a worker has the shared memory, and while the
// process that the lock file names exists, if only as a zombie.
func (p *Postgres) endOrphans(ctx context.Context) error {
	if _, err := os.Stat("/proc/self"); err != nil {
		return nil // whether a process is left cannot be seen here
	}
	if p.AwaitEnd(ctx, orphanTime) != nil {
		for _, pid := range p.Processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
		if err := p.AwaitEnd(ctx, orphanTime); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(p.data(), "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// AwaitEnd returns nil once the last of the server's processes has ended.
func (p *Postgres) AwaitEnd(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for tick := time.Tick(5 * time.Millisecond); len(p.Processes()) > 0; {
		select {
		case <-tick:
		case <-ctx.Done():
			return fmt.Errorf("processes of PostgreSQL in %s do not end: %v", p.Dir, p.Processes())
		}
	}
	return nil
}

func (p *Postgres) data() string { return filepath.Join(p.Dir, "data") }

// program prepares one of PostgreSQL's own programs.
func (p *Postgres) program(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	folder, err := PostgresPrograms()
	if err != nil {
		return nil, err
	}
	return command(ctx, postgresAccount, p.Dir, filepath.Join(folder, name), args...)
}
