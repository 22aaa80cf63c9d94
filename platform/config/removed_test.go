package config_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/config"
)

// A variable that has lost its effect is named at the start, and in the manual of
// upgrades.
func TestRemovedVariablesAreNamed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	config.WarnOfRemoved(zerolog.New(&out), func(string) string { return "" })
	if out.Len() > 0 {
		t.Errorf("an empty environment: %s", out.String())
	}
	manual, err := os.ReadFile("../../docs/upgrading.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	config.WarnOfRemoved(zerolog.New(&out), func(name string) string { all = append(all, name); return "5" })
	if strings.Count(out.String(), "\n") != 1 || len(all) == 0 {
		t.Errorf("want one line, got %s", out.String())
	}
	for _, name := range all {
		if !strings.Contains(out.String(), `"`+name+`"`) || !strings.Contains(string(manual), "`"+name+"`") {
			t.Errorf("%s is not in the log line or in docs/upgrading.md", name)
		}
	}
}
