package postgres

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// isNetwork reports whether err came from the network.
func isNetwork(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Translate turns what Postgres says into what the client may know. SQLSTATE
// classes 08, 53 and 57, and whatever never reached the server, say that the
// database is away or overloaded; 40 and 55P03 that it was too busy.
func Translate(err error) error {
	if err == nil || report.KindOf(err) != "" || errors.Is(err, context.Canceled) {
		return err
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if isAway(err) {
			return &report.Error{Kind: report.Unavailable, Msg: "the database is away", Err: err}
		}
		return err
	}
	if pg.ConstraintName == "reports_category_fk" {
		return noCategory()
	}
	switch class := pg.Code[:2]; {
	case class == "08", class == "53", class == "57", class == "40", pg.Code == "55P03":
		return &report.Error{Kind: report.Unavailable, Msg: "the database is busy", Err: err}
	}
	return err
}

// isAway reports whether err says that the server was not reached, or the
// connection to it got lost, or the wait was too long.
func isAway(err error) bool {
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	return connect || errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || isNetwork(err)
}
