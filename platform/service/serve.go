package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/build"
)

const (
	// headerTimeout ends clients that never finish their header.
	headerTimeout = 5 * time.Second
	// writeTimeout bounds an answer. A stream sets the deadline again before
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
	// lastRequest is how long the connections that a gateway keeps stay open for
	// one more request each, before they are closed.
	lastRequest = time.Second
)

// ServeOptions says what Serve does besides serving.
type ServeOptions struct {
	// Log gets a line at the start and one at the end.
	Log zerolog.Logger
	// Health turns to draining as soon as the context ends. It may be nil.
	Health *Health
	// Drain ends requests that would not end by themselves, such as streams, before
	// the server waits for the requests in hand. It may be nil.
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

// Serve answers requests on ln until ctx ends, then refuses new connections and
// lets the requests in hand finish. Requests do not see ctx's end. It closes ln.
//
// A gateway may be about to send a request into a connection that it has kept. If
// the server closed it at that moment, nobody could tell whether the request was
// done. So the answer to the next request says that it is the last one, and only
// connections that nobody used for a while are closed without it (RFC 9112, 9.6).
func Serve(ctx context.Context, ln net.Listener, h http.Handler, opts ServeOptions) error {
	var draining atomic.Bool
	var open atomic.Int64 // connections
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if draining.Load() {
				w.Header().Set("Connection", "close")
			}
			h.ServeHTTP(w, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			}
		},
		ConnContext:       withConn,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          serverLog(opts.Log),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	info := build.Read()
	opts.Log.Info().Str("addr", ln.Addr().String()).Str("version", info.Version).Str("revision", info.Revision).Msg("serving")

	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	ctx = context.WithoutCancel(ctx)
	draining.Store(true)
	if opts.Health != nil {
		opts.Health.Drain()
	}
	if opts.Drain != nil {
		opts.Drain(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	_ = ln.Close() // clients that connect now are refused, and ask another replica
	served := <-failed
	for last, tick := time.After(lastRequest), time.Tick(10*time.Millisecond); open.Load() > 0 && last != nil; {
		select {
		case <-tick:
		case <-last:
			last = nil
		}
	}
	err := srv.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("drain requests: %w", err), srv.Close())
	}
	if !errors.Is(served, net.ErrClosed) {
		err = errors.Join(err, served)
	}
	opts.Log.Info().Msg("stopped serving")
	return err
}
