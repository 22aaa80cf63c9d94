package pgpool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

func sqlState(code string) error {
	return fmt.Errorf("insert report: %w", &pgconn.PgError{
		Code: code, Message: "canary", Detail: "canary", TableName: "reports", ConstraintName: "reports_category_fk"})
}

func duplicate(constraint string) error {
	return fmt.Errorf("insert: %w", &pgconn.PgError{Code: "23505", Message: "canary", ConstraintName: constraint})
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		err       error
		want      pgpool.Class
		transient bool
	}{
		{"invalid text", sqlState("22P02"), pgpool.Permanent, false},
		{"constraint", sqlState("23505"), pgpool.Permanent, false},
		{"serialization failure", sqlState("40001"), pgpool.Busy, true},
		{"deadlock", sqlState("40P01"), pgpool.Busy, true},
		{"lock timeout", sqlState("55P03"), pgpool.Busy, false},
		{"idle transaction", sqlState("25P03"), pgpool.Busy, false},
		{"statement timeout", sqlState("57014"), pgpool.Busy, false},
		{"deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), pgpool.Busy, false},
		{"shutting down", sqlState("57P01"), pgpool.Away, false},
		{"too many connections", sqlState("53300"), pgpool.Away, false},
		{"connection failure", sqlState("08006"), pgpool.Away, true},
		{"read-only", sqlState("25006"), pgpool.Away, false},
		{"table is missing", sqlState("42P01"), pgpool.Away, false},
		{"column is missing", sqlState("42703"), pgpool.Away, false},
		{"end of file", fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), pgpool.Away, true},
		{"network", &net.OpError{Op: "read", Err: errors.New("reset")}, pgpool.Away, true},
		{"closed connection", fmt.Errorf("begin: %w", pgconn.ErrConnClosed), pgpool.Away, true},
		{"wrong password", sqlState("28P01"), pgpool.Away, false},
		{"not in pg_hba.conf", sqlState("28000"), pgpool.Away, false},
		{"no such database", sqlState("3D000"), pgpool.Away, false},
		{"syntax", sqlState("42601"), pgpool.Away, false},
		{"no privilege", sqlState("42501"), pgpool.Away, false},
		{"no such conflict target", sqlState("42P10"), pgpool.Away, false},
		{"refuses writes to avoid a wraparound", sqlState("54000"), pgpool.Away, false},
		{"not in the state for it", sqlState("55000"), pgpool.Away, false},
		{"raised by a trigger", sqlState("P0001"), pgpool.Away, false},
		{"internal error", sqlState("XX000"), pgpool.Away, false},
		{"index is corrupt", sqlState("XX002"), pgpool.Away, false},
		{"no such schema", sqlState("3F000"), pgpool.Away, false},
		{"transaction is aborted", sqlState("25P02"), pgpool.Away, false},
		{"no such prepared statement", sqlState("26000"), pgpool.Away, false},
		{"disk is full", sqlState("53100"), pgpool.Away, false},
		{"file cannot be read", sqlState("58030"), pgpool.Away, false},
		{"feature is not supported", sqlState("0A000"), pgpool.Away, false},
		{"code of a later version", sqlState("ZZ999"), pgpool.Away, false},
		{"sequence is at its end", sqlState("2200H"), pgpool.Away, false},
		{"encoding lacks a character", sqlState("22P05"), pgpool.Away, false},
		{"number that exists", duplicate("deliveries_pkey"), pgpool.Away, false},
		{"duplicate of the data", duplicate("votes_report_id_voter_id_key"), pgpool.Permanent, false},
		{"null", sqlState("23502"), pgpool.Permanent, false},
		{"check", sqlState("23514"), pgpool.Permanent, false},
		{"number out of range", sqlState("22003"), pgpool.Permanent, false},
		{"cancelled", context.Canceled, pgpool.Unknown, false},
		{"ours", errors.New("no such thing"), pgpool.Unknown, false},
		{"short code", sqlState("4"), pgpool.Away, false},
		{"no code", sqlState(""), pgpool.Away, false},
	} {
		if got := pgpool.Classify(tt.err); got != tt.want {
			t.Errorf("%s: class %q, want %q", tt.name, got, tt.want)
		}
		if got := pgpool.Transient(tt.err); got != tt.transient {
			t.Errorf("%s: transient %t, want %t", tt.name, got, tt.transient)
		}
		if got := pgpool.Describe(tt.err); strings.Contains(got, "canary") || tt.want != pgpool.Unknown && got == "" {
			t.Errorf("%s: described as %q", tt.name, got)
		}
	}
}

func TestLogText(t *testing.T) {
	t.Parallel()
	if got := pgpool.LogText(sqlState("23505")); strings.Contains(got, "canary") || !strings.Contains(got, "23505") {
		t.Errorf("an error of the database is logged as %q", got)
	}
	if got := pgpool.LogText(errors.New("no such thing")); got != "no such thing" {
		t.Errorf("another error is logged as %q, want its own text", got)
	}
}

// The driver has errors that only it can make.
func TestClassifyWhatTheDriverReturns(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, closed := conn.Exec(t.Context(), "select")

	_, refused := pgx.Connect(t.Context(), "postgres://somebody:secret@127.0.0.1:1/nowhere")
	for name, err := range map[string]error{"closed": closed, "refused": refused} {
		if got := pgpool.Classify(err); got != pgpool.Away {
			t.Errorf("%s: class %q, want %q (error: %v)", name, got, pgpool.Away, err)
		}
		for _, secret := range []string{"127.0.0.1", "somebody", "nowhere"} {
			if got := pgpool.Describe(err); strings.Contains(got, secret) {
				t.Errorf("%s: described as %q, which names %s", name, got, secret)
			}
		}
	}
}

func TestConstraint(t *testing.T) {
	t.Parallel()
	if got := pgpool.Constraint(sqlState("23503")); got != "reports_category_fk" {
		t.Errorf("constraint %q, want reports_category_fk", got)
	}
	if got := pgpool.Constraint(io.EOF); got != "" {
		t.Errorf("constraint %q of an error without one", got)
	}
}
