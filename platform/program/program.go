// Package program is how the programs of CityConnect begin and end: the same lines in the
// log, the same checks of their environment, and one order in which their parts stop.
package program

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Base is what all parts of a program stand on.
type Base struct {
	Pool    *pgxpool.Pool // nil until Open
	Log     zerolog.Logger
	Metrics *prometheus.Registry

	name, database string
}

// Begin returns the Base of the program called name, after warnings about its environment.
// urls has the servers that it uses besides the database and the broker, by their variables.
func Begin(name string, cfg config.Service, getenv func(string) string, logs io.Writer, urls map[string]string) *Base {
	who, _, _ := strings.Cut(name, "-") // report-service is "report" in the log
	b := &Base{Log: service.NewLogger(logs, who, cfg.LogLevel), Metrics: service.NewRegistry(), name: name, database: cfg.DatabaseURL}
	config.WarnOfRemoved(b.Log, getenv)
	all := map[string]string{"DATABASE_URL": cfg.DatabaseURL, "RABBITMQ_URL": cfg.RabbitURL}
	maps.Copy(all, urls)
	config.WarnWithoutTLS(b.Log, all)
	return b
}

// Open opens the Pool. It fails if the database refuses the sign-in, and not if it is away.
// The caller closes it last, because everything else uses it.
func (b *Base) Open(ctx context.Context) (err error) {
	if b.Pool, err = pgpool.Open(ctx, b.database, b.name); err != nil {
		return err
	}
	if err = pgpool.SignIn(ctx, b.Pool); err != nil {
		b.Pool.Close()
	}
	return err
}

// A Part runs until its context ends, and returns once it has drained.
type Part func(context.Context) error

// Run runs parts until ctx ends or one of them fails. Last are the parts that the others
// need to drain: they end after them, and the others end if one of these fails.
func Run(ctx context.Context, parts, last []Part) error {
	lastCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	needed, lastCtx := errgroup.WithContext(lastCtx)
	for _, part := range last {
		needed.Go(func() error { return part(lastCtx) })
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(lastCtx, stop)
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error { return part(ctx) })
	}
	err := group.Wait()
	end()
	return errors.Join(err, needed.Wait())
}
