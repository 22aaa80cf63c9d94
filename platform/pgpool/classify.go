package pgpool

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// A Class sorts errors of the database by what helps against them.
type Class string

// The classes of errors.
const (
	// Unknown errors are not the database's.
	Unknown Class = ""
	// Away means that the server does not do its work, whatever it is asked: it was
	// not reached, the connection got lost, it has no resources, it refuses a right,
	// a table is missing, or a sequence is at its end. Nothing helps but to repair
	// the server, or to wait.
	Away Class = "away"
	// Busy means that the database works and did not get this done: a lock, a
	// conflict, or the deadline came first. The same may succeed next time.
	Busy Class = "busy"
	// Permanent means that the database refuses the data. The same fails again.
	Permanent Class = "permanent"
)

// Classify returns the class of err, after PostgreSQL's appendix A.
//
// Only what the data can have caused is Permanent; every other error of a server
// is its own. A list of the errors that are the server's would never be complete,
// and each that it lacks would cost the messages of an outage.
func Classify(err error) Class {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok && !errors.Is(err, context.Canceled) || errors.Is(err, errEncoding) || behindPooler(err) {
		return Away // for whatever reason: nothing was asked yet
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyPgError(e)
	}
	if errors.Is(err, context.Canceled) {
		return Unknown // the caller that cancelled knows why
	}
	if connectionLost(err) {
		return Away
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Busy
	}
	return Unknown
}

// readOnly is the SQLSTATE of a write to a server that is, or has become, a
// standby.
const readOnly = "25006"

func classifyPgError(e *pgconn.PgError) Class {
	switch e.Code {
	case "57014", "55P03", "25P03": // a statement was cancelled, a lock was not to be had, a transaction was idle
		return Busy
	case "2200H", "22P05": // a sequence is at its end, the database's encoding lacks the character
		return Away
	case "23505": // a duplicate
		// Keys that the data brings are looked up first, or conflict without an error.
		// A primary key that exists was numbered by a sequence which is behind its
		// table, as after a restore of the tables alone.
		if strings.HasSuffix(e.ConstraintName, "_pkey") {
			return Away
		}
	}
	switch e.Code[:min(2, len(e.Code))] {
	case "40": // serialization failure, deadlock
		return Busy
	case "22", "23": // data, constraints
		return Permanent
	}
	return Away
}

// refusal says in words why a server lets nobody in, or nothing for another
// SQLSTATE.
func refusal(code string) string {
	switch code {
	case "28P01":
		return "the database refuses the password"
	case "3D000":
		return "the server has no such database"
	}
	if strings.HasPrefix(code, "28") {
		return "the database refuses the sign-in"
	}
	return ""
}

// Transient reports whether err clears by itself within milliseconds, so that
// the same transaction should be tried again at once: a conflict with another
// transaction, or a connection that got lost.
func Transient(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "40001" || e.Code == "40P01" || e.Code[:min(2, len(e.Code))] == "08"
	}
	return connectionLost(err)
}

// connectionLost reports whether the server was not reached, or the connection
// to it broke, within the deadline.
func connectionLost(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Constraint returns the name of the constraint that err is about, or "".
func Constraint(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.ConstraintName
	}
	return ""
}

// Describe returns a text for err that is safe to log and to store. It quotes
// no value of a row and names neither the server nor its user, as the texts of
// PostgreSQL and its driver do. It is empty for errors of class Unknown.
func Describe(err error) string {
	if behindPooler(err) {
		return errPooler.Error()
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return describePgError(e)
	}
	if errors.Is(err, errEncoding) {
		return errEncoding.Error()
	}
	switch Classify(err) {
	case Busy:
		return "the database did not answer in time"
	case Away:
		return "the connection to the database failed or was lost"
	}
	return ""
}

// LogText returns what a log may have of err: the text of Describe for an error
// of the database, and err's own for any other.
func LogText(err error) string { return cmp.Or(Describe(err), err.Error()) }

// inWords says what a server refuses for a reason of its own, or nothing for another
// SQLSTATE.
func inWords(code string) string {
	switch code {
	case "40001", "40P01":
		return "another transaction was in the way"
	case "53100":
		return "the disk of the database is full"
	case "53300":
		return "the database has no connection left"
	case "57014":
		return "the database took too long"
	case "57P01", "57P02", "57P03":
		return "the database stops or starts"
	case readOnly:
		return "the database takes no writes"
	}
	return refusal(code)
}

// describePgError leaves out the message and the detail, which show values.
func describePgError(e *pgconn.PgError) string {
	text := "SQLSTATE " + e.Code
	if words := inWords(e.Code); words != "" {
		return words + " (" + text + ")"
	}
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
