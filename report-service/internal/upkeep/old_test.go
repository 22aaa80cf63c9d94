package upkeep_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

// TestMain lets the test binary be a process that removes words, and dies on its way.
func TestMain(m *testing.M) {
	if os.Getenv("OLD_DATABASE") == "" {
		os.Exit(m.Run())
	}
	if err := removeWords(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// A mortal store kills its process at one of its files, before or after that is stored or
// deleted.
type mortal struct {
	blob.Store
	left *int // how many files from now; never below 0
}

func (m mortal) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	m.die()
	defer m.die()
	return m.Store.Put(ctx, key, r, size)
}

func (m mortal) Delete(ctx context.Context, key string) error {
	m.die()
	defer m.die()
	return m.Store.Delete(ctx, key)
}

func (m mortal) die() {
	if *m.left--; *m.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func removeWords(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("OLD_DATABASE"))
	if err != nil {
		return err
	}
	defer pool.Close()
	files, err := blob.Open(blob.Config{URL: "file://" + os.Getenv("OLD_FILES")})
	if err != nil {
		return err
	}
	left, err := strconv.Atoi(os.Getenv("OLD_LEFT"))
	if err != nil {
		return err
	}
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		return err
	}
	db := postgres.NewDB(pool, keys, func(shards.Set) {}, postgres.Rules{})
	job := upkeep.New(pool, keys, db).OldReportsJob(retention.Period(3*365*24*time.Hour), mortal{files, &left})
	return scheduletest.Run(ctx, pool, job)
}

// A process that removes words is killed again and again, before and after each kind of
// file. Each report is in the archive once, with its words, and is announced once.
func TestOldReportsWhileKilled(t *testing.T) {
	t.Parallel()
	const reports, months, kills = 1500, 3, 30
	pool, dir := pgtest.Report(t), t.TempDir()
	_, err := pool.Exec(t.Context(), `
		with filed as (
			insert into reports (id, title, description, category_id, address, privacy_level, status, version, created_at, updated_at)
			select gen_random_uuid(), 'Lamp ' || n, 'dark', 2, 'Jalan ' || n, 'public', 'resolved', 3,
				timestamptz '2020-01-01Z', timestamptz '2020-02-15Z' + n % $2 * interval '1 month'
			from generate_series(1, $1::int) n returning id)
		insert into reporters (report_id, reporter_id, reporter_name) select id, 'ann-' || id, 'Ann' from filed`, reports, months)
	if err != nil {
		t.Fatal(err)
	}
	child := func(left int) error {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "OLD_DATABASE="+pool.Config().ConnString(), "OLD_FILES="+dir, "OLD_LEFT="+strconv.Itoa(left))
		cmd.Stderr = os.Stderr
		return cmd.Run()
	}
	killed := 0
	for range kills {
		err := child(1 + rand.IntN(8))
		exit, ok := errors.AsType[*exec.ExitError](err)
		switch {
		case ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
			killed++
		case err != nil:
			t.Fatal(err)
		}
	}
	if err := child(0); err != nil {
		t.Fatal(err)
	}
	if killed < kills/2 {
		t.Errorf("%d processes were killed: the test proves little", killed)
	}
	seen := map[string]int{}
	for n := range months {
		file := filepath.Join(dir, "archive", "reports-2020-0"+strconv.Itoa(2+n)+".jsonl")
		readArchive(t, file, seen)
	}
	if len(seen) != reports {
		t.Errorf("the archive has %d reports, want %d", len(seen), reports)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("report %s is there %d times", id, n)
		}
	}
	for sql, want := range map[string]int{
		`select count(*) from reports where title like 'Lamp%' or description <> '' or address <> ''`:                                    0,
		`select count(*) from reporters where reporter_id not like 'erased:%'`:                                                           0,
		`select count(*) from outbox_messages`:                                                                                           reports,
		`select count(distinct report_id) from outbox_messages where routing_key = 'report.moderated' and headers->>'x-recipient' <> ''`: reports,
	} {
		var got int
		if err := pool.QueryRow(t.Context(), sql).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, error %v; want %d", sql, got, err, want)
		}
	}
	if parts, err := filepath.Glob(filepath.Join(dir, "archive", "parts", "*", "*.jsonl")); err != nil || len(parts) > 0 {
		t.Errorf("parts are left: %v, error %v", parts, err)
	}
}

// readArchive counts the reports of a file, and fails the test unless each has its words,
// and the checksum is the file's.
func readArchive(t *testing.T, file string, seen map[string]int) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(strings.TrimSuffix(file, ".jsonl") + ".sha256")
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), filepath.Base(file)); err != nil || string(sum) != want {
		t.Errorf("the checksum is %q, error %v; want %q", sum, err, want)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var r struct{ ID, Title, Description, Address string }
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(r.Title, "Lamp ") || r.Description != "dark" || r.Address == "" {
			t.Errorf("the archive has %+v, want its words", r)
		}
		seen[r.ID]++
	}
}
