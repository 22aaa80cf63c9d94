// Command loadtest puts a running CityConnect under load through its public
// API and proves what became of every event that was accepted.
//
// Requests are made when they are due, whatever became of those before, and
// each latency is counted from that moment: a stall shows in full. It ends
// with 0 only if nothing was lost, doubled or shown to the wrong people; its
// last line is for other programs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/drive"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/result"
	"github.com/cityconnect/cityconnect/scripts/internal/command"
)

var (
	// errBroken says that the run was made and the promise not kept.
	errBroken = errors.New("not every notification was shown exactly once")
	// errLimit says that the promise was kept, for a part of the run.
	errLimit = errors.New("the limit was over before the last request was made")
)

func main() {
	command.Main(func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

// run makes one load test as args say.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parse(args, stderr)
	if err != nil {
		return err
	}
	progress := progress{stderr, float64(opts.Events()) / opts.Rate}
	r, err := drive.Run(ctx, &opts.Config, progress.say, progress.tell)
	if err != nil {
		return err
	}
	r.Title, r.Settings, r.Machine = opts.profile, opts.settings(), machine()
	if err := write(opts.out, r); err != nil {
		return err
	}
	if err := r.WriteText(stdout); err != nil {
		return err
	}
	if !r.Good() {
		return errBroken
	}
	if r.Cut && !opts.insane { // ten times everything is more than fits
		return errLimit
	}
	return nil
}

// write puts the report into dir as text and as JSON; an empty dir means neither.
func write(dir string, r *result.Result) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a report is not a secret
		return fmt.Errorf("make the report's folder: %w", err)
	}
	for name, form := range map[string]func(io.Writer) error{
		"report.txt": r.WriteText, "report.json": r.WriteJSON,
	} {
		file, err := os.Create(filepath.Join(dir, name)) //nolint:gosec // where the caller wants it
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		if err := errors.Join(form(file), file.Close()); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
