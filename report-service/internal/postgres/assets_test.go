package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Filings that look for things at the same time share queries, and each gets its own answer.
func TestThingsAreLookedUpTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`insert into assets (layer, code, name, latitude, longitude, retired_at)
		select 'lamps', 'L-' || n, 'Lamp ' || n, -6 - n / 100.0, 107, case when n = 7 then now() end from generate_series(0, 49) n`)
	f.exec(`insert into assets (layer, code, name, latitude, longitude) values ('lamps', 'lamps', '', -6, 107)`)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			n := i % 50
			key := fmt.Sprintf("lamps/L-%d", n)
			thing, place, err := f.Asset(t.Context(), key)
			switch {
			case n == 7 && !errors.Is(err, report.ErrNoAsset):
				t.Errorf("%s, which is retired: error %v, want ErrNoAsset", key, err)
			case n != 7 && (err != nil || thing.Key != key || thing.Name != fmt.Sprintf("Lamp %d", n) || place.Latitude != -6-float64(n)/100):
				t.Errorf("%s is %+v at %v (error %v)", key, thing, place, err)
			}
			if _, _, err := f.Asset(gone, key); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, report.ErrNoAsset) {
				t.Errorf("somebody who has gone: error %v", err)
			}
		})
	}
	all.Wait()
	for _, key := range []string{"", "lamps", "lamps/", "lamps/L-1/L-2", "bins/L-1", "lamps/l-1"} {
		if _, _, err := f.Asset(t.Context(), key); !errors.Is(err, report.ErrNoAsset) {
			t.Errorf("%q: error %v, want ErrNoAsset", key, err)
		}
	}
}
