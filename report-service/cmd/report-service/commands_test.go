package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/testing/processtest"
)

// The log says who republished messages, of which time, and how many.
func TestRepublishIsLogged(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	_, err := pool.Exec(t.Context(), `
		insert into outbox_messages (id, routing_key, payload, status, published_at, report_id, report_version, shard)
		values (gen_random_uuid(), 'report.created', '{}', 'published', now(), gen_random_uuid(), 1, 7)`)
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for name, value := range environment(t, pool.Config().ConnString(), "amqp://guest:guest@"+nowhere+"/") {
		env = append(env, name+"="+value)
	}
	since, until := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	command := processtest.Command(t.Context(), env, "republish", "-since", since, "-until", until)
	var logs bytes.Buffer
	command.Stderr = &logs
	if out, err := command.Output(); err != nil || string(out) != "1 of 1 messages pending again\n" {
		t.Fatalf("republish: %q, error %v\n%s", out, err, &logs)
	}
	type line struct {
		Level, Actor string
		Since, Until time.Time
		Messages     int
	}
	var lines []line
	for text := range strings.Lines(logs.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if l.Level != "info" || l.Actor == "" || l.Since.Format(time.RFC3339) != since || l.Until.Format(time.RFC3339) != until {
			t.Errorf("%s: want an actor, and what was asked for", text)
		}
		lines = append(lines, l)
	}
	if len(lines) != 2 || lines[1].Messages != 1 {
		t.Errorf("the log is\n%s\nwant a line at the start, and one at the end with one message", &logs)
	}
}
