package postgres_test

import (
	"slices"
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/audit"
)

// The steps that operators tick replace those ticked before, and are audited. A server that
// archives nothing says so, to the service's own role.
func TestSetup(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	s := postgres.New(pool, postgres.Options{}).Setup
	if got, err := s.Read(t.Context()); err != nil || len(got.Done) != 0 || got.Done == nil || got.ArchivedAt != nil {
		t.Errorf("before the first tick: %+v, error %v", got, err)
	}
	for _, done := range [][]string{{"alerts", "backup"}, {}, {"map"}} {
		if err := s.Set(t.Context(), "pavel", done); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Read(t.Context()); err != nil || !slices.Equal(got.Done, done) {
			t.Errorf("read %+v (error: %v), want %v", got, err, done)
		}
	}
	acts, err := audit.List(t.Context(), pool, 0, 10)
	if err != nil || len(acts) != 3 || acts[0].Action != audit.Setup || acts[0].Actor != "pavel" {
		t.Errorf("audit %+v (error: %v), want three changes by pavel", acts, err)
	}
}
