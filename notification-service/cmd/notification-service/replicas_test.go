package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A message arrives in the stream, also when the process is killed between the
// message and the client's return.
func TestFromBrokerToStream(t *testing.T) {
	t.Parallel()
	c := newCluster(t, rabbittest.Vhost(t), pgtest.Notification(t).Config().ConnString())
	r := c.start()
	p, token := c.publisher(), r.token("ann", "resident")
	s := r.open(token, "")
	expect(t, s, "ready")
	if err := p.vote(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	first := expect(t, s, "notification")

	r.Kill()
	if err := p.vote(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	r.Start()
	s = r.open(token, first.ID)
	expect(t, s, "ready")
	if e := expect(t, s, "notification"); !strings.HasSuffix(e.ID, ".2") {
		t.Errorf("after the crash: id %s, want the number 2", e.ID)
	}
	if code := r.Stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// The clients of one replica get what another commits. An announcement may get
// lost; PostgreSQL, which is read instead, may order the members differently.
func TestReplicasAnnounce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, rabbittest.Vhost(t), pgtest.Notification(t).Config().ConnString())
	a, b := c.start(), c.start()
	p, token := c.publisher(), a.token("ann", "resident")
	onA, onB := a.open(token, ""), b.open(token, "")
	expect(t, onA, "ready")
	expect(t, onB, "ready")
	for range 10 {
		if err := p.vote(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
		first, second := expect(t, onA, "notification"), expect(t, onB, "notification")
		if first.ID != second.ID || !maps.Equal(members(t, first), members(t, second)) {
			t.Errorf("the replicas sent %s with %s and %s with %s", first.ID, first.Data, second.ID, second.Data)
		}
	}
}

// members returns those of an event's data, which are strings, numbers and
// booleans.
func members(t *testing.T, e sse.Event) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(e.Data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
