package devserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// The commands and settings here are those of docs/backup.md.

func (p *Postgres) archive() string { return filepath.Join(p.Dir, "archive") }

func (p *Postgres) base() string { return filepath.Join(p.Dir, "base") }

// makeArchive makes the folder, if the server is to have one.
func (p *Postgres) makeArchive() error {
	if !p.Archive {
		return nil
	}
	return os.MkdirAll(p.archive(), 0o700)
}

// archiving returns the settings of a server that archives its log: files in the
// archive are whole, also if the server is killed while it writes there.
func (p *Postgres) archiving() []string {
	if !p.Archive {
		return nil
	}
	segment := filepath.Join(p.archive(), "%f")
	return []string{"archive_mode=on", fmt.Sprintf("archive_command=cp '%%p' '%[1]s.part' && mv '%[1]s.part' '%[1]s'", segment)}
}

// BaseBackup copies the running server, in the place of an earlier copy.
func (p *Postgres) BaseBackup(ctx context.Context) error {
	if err := os.RemoveAll(p.base()); err != nil {
		return err
	}
	backup, err := p.program(ctx, "pg_basebackup", "--pgdata="+p.base(), "--format=tar", "--gzip", "--wal-method=stream", "--checkpoint=fast",
		"--host=127.0.0.1", "--port="+strconv.Itoa(p.Port), "--username="+Superuser)
	if err != nil {
		return err
	}
	backup.Env = append(os.Environ(), "PGPASSWORD="+p.Password)
	return execute(backup, nil)
}

// Recover replaces the data of the server, which does not run, by the base backup,
// and returns the settings with which it is to be started once: it replays its
// archived log until the target, such as recovery_target_xid=750, and accepts
// connections from then on.
func (p *Postgres) Recover(ctx context.Context, target string) (settings []string, err error) {
	owner, err := account(postgresAccount)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(p.data()); err != nil {
		return nil, err
	}
	log := filepath.Join(p.data(), "pg_wal")
	if err := os.MkdirAll(log, 0o700); err != nil {
		return nil, err
	}
	for archive, folder := range map[string]string{"base.tar.gz": p.data(), "pg_wal.tar.gz": log} {
		if err := execute(exec.CommandContext(ctx, "tar", "-xzf", filepath.Join(p.base(), archive), "-C", folder), nil); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(p.data(), "recovery.signal"), nil, 0o600); err != nil {
		return nil, err
	}
	return []string{
		"restore_command=cp '" + filepath.Join(p.archive(), "%f") + "' '%p'", target,
		"recovery_target_action=promote", // a server that only pauses there would be read-only
		"hot_standby=off",                // nobody is let in before
	}, give(p.data(), owner)
}
