// Package short keeps tests that take minutes out of `make test`, which runs with
// -short. `make check` runs them in full.
package short

import "testing"

// Count returns how often a test repeats its disturbance: few with -short, else all.
func Count(few, all int) int {
	if testing.Short() {
		return few
	}
	return all
}

// Skip skips a test with -short.
func Skip(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes minutes; make check runs it")
	}
}
