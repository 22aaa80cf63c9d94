package postgres_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/appearance"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// The second of two operators who change the appearance at once is refused; each change
// is audited, and known at once where it was made.
func TestAppearance(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	s := postgres.New(pool, postgres.Options{}).Appearance
	if a := s.Now(t.Context()); a.Revision != 0 || a.Colour != "" {
		t.Errorf("before the first change: %+v", a)
	}
	set := func(revision int64, colour string) (appearance.Appearance, error) {
		return s.Set(t.Context(), "pavel", appearance.Appearance{Revision: revision, Colour: colour, Words: map[string]appearance.Words{"id": {Greeting: "Halo,"}}})
	}
	for i, tt := range []struct {
		revision int64
		colour   string
		stale    bool
	}{{0, "#112233", false}, {0, "#445566", true}, {1, "#445566", false}, {1, "#778899", true}} {
		a, err := set(tt.revision, tt.colour)
		if stale := fault.KindOf(err) == webhook.Stale; stale != tt.stale || !stale && (err != nil || a.Revision != tt.revision+1) {
			t.Errorf("change %d: %+v, error %v; want stale %t", i, a, err, tt.stale)
		}
	}
	if a := s.Now(t.Context()); a.Revision != 2 || a.Colour != "#445566" || a.Words["id"].Greeting != "Halo," {
		t.Errorf("now: %+v, want the second change", a)
	}
	acts, err := audit.List(t.Context(), pool, 0, 10)
	if err != nil || len(acts) != 2 || acts[0].Action != audit.Appearance || acts[0].Actor != "pavel" {
		t.Errorf("audit %+v (error: %v), want two changes by pavel", acts, err)
	}
}
