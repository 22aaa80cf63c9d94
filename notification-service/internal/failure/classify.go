package failure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Classify returns the class of err, which is not nil. What it does not know
// is Transient: a mistake there costs some attempts, while the other mistake
// costs a message.
func Classify(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifySQLState(e.Code)
	}
	if connectionLost(err) {
		return Away
	}
	return Transient
}

// classifySQLState follows PostgreSQL's appendix A.
func classifySQLState(code string) Class {
	switch {
	case code == "57014": // one statement was cancelled; the database lives
		return Transient
	case code == "25006": // read-only: a failover is on its way
		return Away
	}
	switch code[:min(2, len(code))] {
	case "22", "23": // data and constraints
		return Permanent
	case "08", "53", "57", "58": // connection, resources, intervention, system
		return Away
	}
	return Transient
}

// Quick tells whether err clears by itself within milliseconds, so that
// trying again at once is worth more than a way through the broker.
func Quick(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "40001" || e.Code == "40P01" || e.Code[:min(2, len(e.Code))] == "08"
	}
	return connectionLost(err)
}

// TimedOut tells whether err is an expired deadline: either the statement was
// slow, or the database is away without having said so.
func TimedOut(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

func connectionLost(err error) bool {
	if TimedOut(err) {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || strings.HasSuffix(err.Error(), "conn closed")
}

// Describe returns a text for err that quotes neither a message nor a row.
func Describe(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Text
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return describeSQL(e)
	}
	switch {
	case TimedOut(err):
		return "the database did not answer in time"
	case connectionLost(err):
		return "the connection to the database was lost"
	}
	return fmt.Sprintf("internal error of type %T", root(err))
}

// describeSQL leaves out the message and the detail, which show values.
func describeSQL(e *pgconn.PgError) string {
	text := "SQLSTATE " + e.Code
	if e.TableName != "" {
		text += ", table " + e.TableName
	}
	if e.ColumnName != "" {
		text += ", column " + e.ColumnName
	}
	if e.ConstraintName != "" {
		text += ", constraint " + e.ConstraintName
	}
	return text
}

func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
