package monitor

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	amqp "github.com/rabbitmq/amqp091-go"
)

// The causes of a server that does not do its work. They follow one another while
// it stops and starts: the state is as old as the first of them.
const (
	Refused     Cause = "refused"     // it refuses connections: nothing listens there
	Timeout     Cause = "timeout"     // it does not answer in time
	Lost        Cause = "lost"        // connections to it break
	Unreachable Cause = "unreachable" // no such host, or no way there
	SignIn      Cause = "sign_in"     // it refuses the sign-in
	Starting    Cause = "starting"    // it starts, or stops
	Full        Cause = "full"        // it takes no more connections
)

func (c Cause) isAway() bool {
	return slices.Contains([]Cause{Refused, Timeout, Lost, Unreachable, SignIn, Starting, Full}, c)
}

// awayCause returns why a server was not reached or did not answer.
func awayCause(err error) Cause {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case e.Code == "57P03" || e.Code == "57P01" || e.Code == "57P02":
			return Starting
		case e.Code == "53300":
			return Full
		case strings.HasPrefix(e.Code, "28") || e.Code == "3D000":
			return SignIn
		}
		return Lost
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok && (e.Code == amqp.AccessRefused || e.Code == amqp.NotAllowed) {
		return SignIn
	}
	_, noHost := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case noHost, errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return Timeout
	}
	return Lost
}
