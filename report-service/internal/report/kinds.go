package report

import "github.com/cityconnect/cityconnect/platform/fault"

// The kinds of failures that only reports have.
const (
	OwnReport         fault.Kind = "own report"
	Closed            fault.Kind = "closed"
	IllegalTransition fault.Kind = "illegal transition"
	Stale             fault.Kind = "stale"
	KeyReused         fault.Kind = "key reused"
	StillRunning      fault.Kind = "still running"
)

// ErrNotFound is the failure that there is no such report.
var ErrNotFound = fault.New(fault.NotFound, "there is no such report")
