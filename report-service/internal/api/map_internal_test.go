package api

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Those who look at the same area at the same time share the work, which somebody else
// does if who began leaves.
func TestSharedMapsAreReadOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		maps, key := newSharedMaps(), mapKey{zoom: 12}
		var reads atomic.Int32
		read := func(ctx context.Context) (report.Map, error) {
			reads.Add(1)
			select {
			case <-time.After(time.Second):
				return report.Map{Clusters: []report.MapCluster{{Count: 200}}, Hidden: "none"}, nil
			case <-ctx.Done():
				return report.Map{}, ctx.Err()
			}
		}
		leaving, leave := context.WithCancel(t.Context())
		go func() {
			if _, err := maps.read(leaving, key, "none", read); !errors.Is(err, context.Canceled) {
				t.Errorf("who left got %v", err)
			}
		}()
		synctest.Wait()
		for range 10 {
			go func() {
				if shown, err := maps.read(t.Context(), key, "none", read); err != nil || shown.Clusters[0].Count != 200 {
					t.Errorf("got %+v, %v", shown, err)
				}
			}()
		}
		synctest.Wait()
		leave()
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock is synctest's
		if n := reads.Load(); n != 2 {
			t.Errorf("it was read %d times, want 2", n)
		}
		if _, ok := maps.find(key, "none"); !ok {
			t.Error("it is not kept")
		}
		if _, ok := maps.find(key, "another"); ok {
			t.Error("it is shown after a report was hidden")
		}
		time.Sleep(clustersLife) //nolint:forbidigo // the clock is synctest's
		if _, ok := maps.find(key, "none"); ok {
			t.Error("it is kept for ever")
		}
	})
}

// However many areas are asked for, few are kept, and the latest are.
func TestFewMapsAreKept(t *testing.T) {
	t.Parallel()
	maps := newSharedMaps()
	for zoom := range 2 * maxKeptMaps {
		_, err := maps.read(t.Context(), mapKey{zoom: zoom}, "", func(context.Context) (report.Map, error) {
			return report.Map{Clusters: []report.MapCluster{{}}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := maps.kept[mapKey{zoom: 2*maxKeptMaps - 1}]; len(maps.kept) != maxKeptMaps || !ok {
		t.Errorf("%d are kept, the latest: %t; want %d", len(maps.kept), ok, maxKeptMaps)
	}
}

func TestPayer(t *testing.T) {
	t.Parallel()
	for forwarded, want := range map[string]string{
		"": "127.0.0.1/32", "192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "192.0.2.7, 10.0.0.1": "192.0.2.7/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "2001:db8:1:2::1": "2001:db8:1:2::/64",
	} {
		r := &http.Request{RemoteAddr: "127.0.0.1:4711", Header: http.Header{"X-Forwarded-For": {forwarded}}}
		for who, p := range map[string]auth.Principal{"nobody": {}, "a guest": {ID: "g", Guest: true}} {
			if got := payer(r.WithContext(auth.With(r.Context(), p))); got != "address "+want {
				t.Errorf("%s at %q pays as %q, want %q", who, forwarded, got, want)
			}
		}
		if got := payer(r.WithContext(auth.With(r.Context(), auth.Principal{ID: "ann"}))); got != "user ann" {
			t.Errorf("an account pays as %q", got)
		}
	}
}
