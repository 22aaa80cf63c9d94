package service

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/cityconnect/cityconnect/platform/build"
)

// A Command is another thing that a service's program does, with the same
// environment. It reads in and reports to out.
type Command func(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out io.Writer) error

// Main is the main function of the service called name. It runs run, whose
// context ends with the first signal to stop, and exits with 1 if that fails.
// With the argument healthcheck it checks instead whether the service that listens on
// addr is ready, with --version it prints its build, and with the name of one of
// commands as the first argument it runs that.
func Main(name string, run func(ctx context.Context, getenv func(string) string, logs io.Writer) error, addr func(getenv func(string) string) (string, error), commands map[string]Command) {
	args := os.Args[1:]
	if len(args) == 1 && (args[0] == "--version" || args[0] == "version") {
		fmt.Fprintln(os.Stdout, name, build.Read())
		return
	}
	if err := command(args, run, addr, commands); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

func command(args []string, run func(context.Context, func(string) string, io.Writer) error, addr func(func(string) string) (string, error), commands map[string]Command) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills at once
	defer stop()
	switch {
	case len(args) == 0:
		return run(ctx, os.Getenv, os.Stdout)
	case len(args) == 1 && args[0] == "healthcheck":
		listens, err := addr(os.Getenv)
		if err != nil {
			return err
		}
		return Healthcheck(ctx, listens)
	case commands[args[0]] != nil:
		return commands[args[0]](ctx, args[1:], os.Getenv, os.Stdin, os.Stdout)
	}
	names := append(slices.Sorted(maps.Keys(commands)), "healthcheck", "--version")
	return fmt.Errorf("unknown arguments %q: must be none, or %s", args, strings.Join(names, ", "))
}
