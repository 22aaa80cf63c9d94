package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// withAssets uploads things and measures that, the things near a place, and filings on one
// against filings on none.
func withAssets(ctx context.Context, r *revision) error {
	file := lamps(*assets)
	upload := func(file string) error {
		began := time.Now()
		var changed struct{ Added, Changed, Removed int }
		err := r.service.Operate(ctx, http.MethodPut, "/reports/assets/lamps?category=2", "text/csv", []byte(file), &changed)
		fmt.Printf("%d things, %d bytes: %.1f s, %d added, %d changed, %d removed\n",
			*assets, len(file), time.Since(began).Seconds(), changed.Added, changed.Changed, changed.Removed)
		return err
	}
	for _, file := range []string{file, strings.Replace(file, "Lamp 7\n", "Lamp seven\n", 1)} {
		if err := upload(file); err != nil {
			return err
		}
	}
	fmt.Printf("the service had at most %d MiB\n", proc.Memory(r.service.Cmd.Process.Pid, "VmHWM")>>20)
	near, err := nearAPin(ctx, r.service)
	if err != nil {
		return err
	}
	fmt.Printf("%-24s p50 %6.2f ms   p99 %6.2f ms\n", "things near a pin", stats.Percentile(near, 50), stats.Percentile(near, 99))
	// Only now: the service ends a connection that sends nothing.
	c, err := connect(ctx, r.service, *conns, "resident")
	if err != nil {
		return err
	}
	defer c.close()
	sides := [2]action{
		func(_ context.Context, conn, k int) error {
			lamp := fmt.Sprintf(`"asset":"lamps/L-%d","category_id"`, (conn*4999+k*31)%*assets)
			return c.all[conn].send("POST", "/reports", strings.Replace(newReport, `"category_id"`, lamp, 1), 201)
		},
		c.create,
	}
	rates, err := compare(ctx, "creates on a thing", "on none", sides)
	if err != nil {
		return err
	}
	var figures testbed.Figures
	figures.AddRatio("create_asset_ratio", rates[0], rates[1])
	figures.Print()
	return nil
}

// lamps is a file of things in the whole city.
func lamps(n int) string {
	var file strings.Builder
	file.WriteString("code,lat,lng,name\n")
	for i := range n {
		_, _ = fmt.Fprintf(&file, "L-%d,%.5f,%.5f,Lamp %d\n", i, city[1]+rand.Float64()*(city[3]-city[1]), city[0]+rand.Float64()*(city[2]-city[0]), i)
	}
	return file.String()
}

// nearAPin returns in milliseconds how long answers take about the part of the map around a
// place, one after the other.
func nearAPin(ctx context.Context, s *testbed.ReportService) (took []float64, err error) {
	const around, times = 0.001, 1000
	for range times {
		latitude, longitude := city[1]+rand.Float64()*(city[3]-city[1]), city[0]+rand.Float64()*(city[2]-city[0])
		began := time.Now()
		path := fmt.Sprintf("/map/assets?bbox=%.5f,%.5f,%.5f,%.5f", longitude-around, latitude-around, longitude+around, latitude+around)
		if err := s.Operate(ctx, http.MethodGet, path, "", nil, nil); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(began))/float64(time.Millisecond))
	}
	return took, nil
}
