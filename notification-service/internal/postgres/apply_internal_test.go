package postgres

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
)

var update = flag.Bool("update", false, "write the golden file")

// All forms of apply.sql are as testdata/apply.sql shows them, and PostgreSQL
// understands each.
func TestFormsOfApply(t *testing.T) {
	t.Parallel()
	const golden = "testdata/apply.sql"
	conn, err := pgtest.Notification(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	var all strings.Builder
	for _, f := range slices.SortedFunc(maps.Keys(statements), func(a, b form) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		s := statements[f]
		fmt.Fprintf(&all, "-- %+v\n", f)
		for i, name := range s.parameters {
			fmt.Fprintf(&all, "-- $%d is %s\n", i+1, name)
		}
		fmt.Fprintln(&all, s.sql)
		description, err := conn.Conn().Prepare(t.Context(), fmt.Sprint(f), s.sql)
		if err != nil {
			t.Errorf("%+v: %v", f, err)
		} else if got, want := len(description.ParamOIDs), len(s.parameters); got != want {
			t.Errorf("%+v has %d parameters, want %d", f, got, want)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if all.String() != string(want) {
		t.Errorf("the forms differ from %s; look at git diff after running the test with -update", golden)
	}
}
