package service

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main is the main function of the service called name, which listens on addr
// unless HTTP_ADDR says otherwise. It runs run, whose context ends with the
// first signal to stop, and exits with 1 if that fails. With the argument
// healthcheck it asks a running one instead whether it is ready.
func Main(name, addr string, run func(ctx context.Context, getenv func(string) string, logs io.Writer) error) {
	if err := command(os.Args[1:], addr, run); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

func command(args []string, addr string, run func(context.Context, func(string) string, io.Writer) error) error {
	switch {
	case len(args) == 0:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second signal kills at once
		defer stop()
		return run(ctx, os.Getenv, os.Stdout)
	case len(args) == 1 && args[0] == "healthcheck":
		return Healthcheck(context.Background(), cmp.Or(os.Getenv("HTTP_ADDR"), addr))
	}
	return fmt.Errorf("unknown arguments %q; want none, or healthcheck", args)
}
