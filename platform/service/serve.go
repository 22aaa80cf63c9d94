package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"
)

const (
	// headerTimeout ends clients that never finish their header.
	headerTimeout = 5 * time.Second
	// writeTimeout bounds an answer. A stream sets the deadline anew before
	// each of its writes, with http.ResponseController.
	writeTimeout = 30 * time.Second
	// idleTimeout is above that of common gateways (nginx: 60 s), so that it is
	// they who close a kept connection and never we under their next request.
	idleTimeout = 90 * time.Second
	// maxHeader leaves room for a token in a cookie, which browsers cap at 4 KB.
	maxHeader = 32 << 10
	// shutdownTimeout leaves the parts that end after the server some of the
	// 10 s that Compose and Kubernetes' operators commonly grant.
	shutdownTimeout = 6 * time.Second
)

// ServeOptions says what Serve does besides serving.
type ServeOptions struct {
	// Log gets a line at the start and one at the end.
	Log zerolog.Logger
	// Health turns to draining as soon as the context ends. It may be nil.
	Health *Health
	// Drain ends what would not end by itself, such as streams, before the
	// server waits for the requests in hand. It may be nil.
	Drain func(context.Context)
}

// Listen opens addr, such as "127.0.0.1:3002".
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	return ln, nil
}

// Serve answers requests on ln until ctx ends, then refuses new ones and lets
// those in hand finish. Requests do not see ctx's end. It closes ln.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, opts ServeOptions) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          serverLog(opts.Log),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	opts.Log.Info().Str("addr", ln.Addr().String()).Msg("serving")

	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	err := shutdown(context.WithoutCancel(ctx), srv, opts)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	opts.Log.Info().Msg("stopped serving")
	return err
}

func shutdown(ctx context.Context, srv *http.Server, opts ServeOptions) error {
	if opts.Health != nil {
		opts.Health.Drain()
	}
	if opts.Drain != nil {
		opts.Drain(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("drain requests: %w", err), srv.Close())
	}
	return nil
}
