package service

import (
	"os"
	"runtime/debug"
)

// gcPercent lets the heap grow to five times what lives in it.
const gcPercent = 400

// TuneGC lets garbage wait, unless GOGC says how long. It is for services
// whose heap is small and fills fast: with Go's own 100, collections took 8 % of
// report-service's time under load, for a heap of a few megabytes. A service
// that keeps much alive would pay for it in memory. GOMEMLIMIT is obeyed all the
// same.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
