// Command migrate applies the schema of one database and exits.
//
//	DATABASE_URL=postgres://… migrate up -database report
//
// It exits 0 when the database has the version that was asked for. Concurrent
// runs are safe: one works, the others wait for it. A migration that does not
// get a lock on a table within 5 s fails, and can be run again; lock_timeout in
// the URL changes that. With --version it prints which build it is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/address"
	"github.com/cityconnect/cityconnect/platform/build"
)

const usage = "usage: DATABASE_URL=postgres://user:password@host:port/name migrate up|version|down -database report|notification (down drops all data, and needs -drop-all-data)"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "migrate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	if args[0] == "--version" {
		fmt.Fprintln(out, "migrate", build.Read())
		return nil
	}
	flags := flag.NewFlagSet("migrate", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the returned error says it
	name := flags.String("database", "", "report or notification")
	drop := flags.Bool("drop-all-data", false, "confirm what down does")
	command := ""
	for rest := args; ; rest = flags.Args()[1:] { // flags are before and behind the command
		if err := flags.Parse(rest); err != nil {
			return fmt.Errorf("%w; %s", err, usage)
		}
		if flags.NArg() == 0 {
			break
		}
		if command != "" {
			return fmt.Errorf("%q: must be one command; %s", flags.Arg(0), usage)
		}
		command = flags.Arg(0)
	}
	if command == "" {
		return errors.New(usage)
	}
	db := migrations.Database(*name)
	if db != migrations.Report && db != migrations.Notification {
		return fmt.Errorf("-database %q: must be report or notification; %s", *name, usage)
	}
	url, err := databaseURL(getenv)
	if err != nil {
		return err
	}
	switch command {
	case "up":
		err = migrations.Up(ctx, url, db)
	case "down":
		if !*drop {
			return fmt.Errorf("down drops all data of the %s database; say -drop-all-data if that is meant", db)
		}
		err = migrations.Down(ctx, url, db)
	case "version":
	default:
		return fmt.Errorf("unknown command %q; %s", command, usage)
	}
	if err != nil {
		return err
	}
	version, err := migrations.Version(ctx, url, db)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s database at version %d\n", db, version)
	return nil
}

// databaseURL reads DATABASE_URL, or the file that DATABASE_URL_FILE names. Its
// errors show nothing of the value, which has a password.
func databaseURL(getenv func(string) string) (string, error) {
	url := getenv("DATABASE_URL")
	if file := getenv("DATABASE_URL_FILE"); url == "" && file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("DATABASE_URL_FILE: %w", err)
		}
		url = string(content)
	}
	url = strings.Trim(url, " \t\r\n\uFEFF")
	if url == "" {
		return "", errors.New("DATABASE_URL: must be set, such as to postgres://user:password@host:port/name")
	}
	if fault := address.Fault(url); fault != "" {
		return "", errors.New("DATABASE_URL: must be " + fault)
	}
	return url, nil
}
