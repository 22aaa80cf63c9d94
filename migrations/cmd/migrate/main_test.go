package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

// Bad input is answered with the word that is wrong and what would be right.
func TestRunNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		env  map[string]string
		want string
	}{
		{"no command", nil, nil, "usage: "},
		{"unknown database", []string{"up", "-database", "votes"}, nil, `-database "votes": must be report or notification`},
		{"flags first", []string{"-database", "report", "up"}, nil, "DATABASE_URL: must be set"},
		{"flags around", []string{"-drop-all-data", "down", "-database=votes"}, nil, `-database "votes"`},
		{"flags alone", []string{"-database", "report"}, nil, "usage: "},
		{"two commands", []string{"up", "-database", "report", "down"}, nil, `"down": must be one command`},
		{"unknown flag", []string{"up", "-all"}, nil, "-all"},
		{"no URL", []string{"up", "-database", "report"}, nil, "DATABASE_URL: must be set"},
		{"URL file away", []string{"up", "-database", "report"}, map[string]string{"DATABASE_URL_FILE": "/nowhere"}, "DATABASE_URL_FILE: "},
		{"password in the clear", []string{"version", "-database", "report"}, map[string]string{"DATABASE_URL": "postgres://u:Geheim@Teil#2@127.0.0.1:1/x"}, "DATABASE_URL: must be a URL; it must have @ in the password encoded as %40"},
		{"down without a word", []string{"down", "-database", "report"}, map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x"}, "drops all data"},
		{"unknown command", []string{"sideways", "-database", "report"}, map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x"}, `unknown command "sideways"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := run(context.Background(), tt.args, func(name string) string { return tt.env[name] }, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "Teil") {
				t.Errorf("run: %v; want an error with %q", err, tt.want)
			}
		})
	}
}
