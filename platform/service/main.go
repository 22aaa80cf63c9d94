package service

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main is the main function of the service called name. It runs run, whose
// context ends with the first signal to stop, and exits with 1 if that fails.
// With the argument healthcheck it asks the service that listens on addr
// instead whether it is ready.
func Main(name string, run func(ctx context.Context, getenv func(string) string, logs io.Writer) error, addr func(getenv func(string) string) (string, error)) {
	if err := command(os.Args[1:], run, addr); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

func command(args []string, run func(context.Context, func(string) string, io.Writer) error, addr func(func(string) string) (string, error)) error {
	switch {
	case len(args) == 0:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second signal kills at once
		defer stop()
		return run(ctx, os.Getenv, os.Stdout)
	case len(args) == 1 && args[0] == "healthcheck":
		listens, err := addr(os.Getenv)
		if err != nil {
			return err
		}
		return Healthcheck(context.Background(), listens)
	}
	return fmt.Errorf("unknown arguments %q; want none, or healthcheck", args)
}
