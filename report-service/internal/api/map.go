package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// maxMapPoints is how many reports a map shows one by one.
const maxMapPoints = 150

// A Map shows reports as points, and many of them as clusters.
type Map struct {
	Reports interface {
		Map(ctx context.Context, f report.Filter, grid report.Grid, maxPoints int) (report.Map, error)
		Hidden(ctx context.Context) (string, error)
	}
	Gates Gates

	shared *sharedMaps
}

// Operations are those on the map.
func (h Map) Operations() openapi.Operations {
	h.shared = newSharedMaps()
	return openapi.Operations{"listMapPoints": {Handler: answered(h.listMapPoints), Timeout: service.DefaultTimeout}}
}

// listMapPoints handles GET /map/points. Its answer is the same for everyone.
func (h Map) listMapPoints(r *http.Request) (reportapi.MapPoints, error) {
	shown, err := h.mapOf(r, readFilter(r), intParam(r, "zoom"))
	return mapPoints(shown), err
}

// mapOf returns a map that was read for this request, or clusters that can be shared.
func (h Map) mapOf(r *http.Request, filter report.Filter, zoom int) (shown report.Map, err error) {
	read := func(ctx context.Context) (report.Map, error) {
		return h.Reports.Map(ctx, filter, report.GridOf(*filter.Box, zoom), maxMapPoints)
	}
	if len(filter.Statuses) == 0 && len(filter.Categories) == 0 && len(filter.Areas) == 0 && filter.Asset == "" && len(filter.Words) == 0 && len(filter.IDs) == 0 {
		hidden, err := h.Reports.Hidden(r.Context())
		if err != nil {
			return report.Map{}, err
		}
		key := mapKey{*filter.Box, zoom}
		if kept, ok := h.shared.find(key, hidden); ok {
			return kept, nil
		}
		readAny := read
		read = func(ctx context.Context) (report.Map, error) { return h.shared.read(ctx, key, hidden, readAny) }
	}
	err = h.Gates.do(r.Context(), r, func(ctx context.Context) error {
		shown, err = read(ctx)
		return err
	})
	return shown, err
}

const (
	// clustersLife is how long clusters are kept: reports that were filed in that time
	// are missing in their numbers.
	clustersLife = 3 * time.Second
	// maxKeptMaps bounds what is kept, to some megabytes.
	maxKeptMaps = 64
)

// sharedMaps keep the clusters of areas without a filter, so that those who look at
// the same part of the city share the work.
//
// A report that was hidden is in none of them, as in no other answer: clusters are
// used only while the same reports are hidden as when they were read, and each request
// asks the database which those are.
type sharedMaps struct {
	mu      sync.Mutex
	kept    map[mapKey]keptMap
	reading map[mapKey]chan struct{} // closed when it was read
}

type mapKey struct {
	box  report.Box
	zoom int
}

type keptMap struct {
	report.Map
	at time.Time
}

func newSharedMaps() *sharedMaps {
	return &sharedMaps{kept: make(map[mapKey]keptMap), reading: make(map[mapKey]chan struct{})}
}

// find returns the clusters of key that may be shown while those reports are hidden.
func (s *sharedMaps) find(key mapKey, hidden string) (report.Map, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok := s.kept[key]
	return kept.Map, ok && kept.Hidden == hidden && time.Since(kept.at) < clustersLife
}

// read reads the map of key, unless another request has done so in between.
func (s *sharedMaps) read(ctx context.Context, key mapKey, hidden string, read func(context.Context) (report.Map, error)) (report.Map, error) {
	done, err := s.turn(ctx, key)
	if err != nil {
		return report.Map{}, err
	}
	defer done()
	if kept, ok := s.find(key, hidden); ok {
		return kept, nil
	}
	shown, err := read(ctx)
	if err == nil && len(shown.Clusters) > 0 { // points are few, and their titles may be redacted
		s.keep(key, shown)
	}
	return shown, err
}

// turn waits until nobody else reads the map of key. The caller has to call done.
func (s *sharedMaps) turn(ctx context.Context, key mapKey) (done func(), err error) {
	for {
		s.mu.Lock()
		other, ok := s.reading[key]
		if !ok {
			mine := make(chan struct{})
			s.reading[key] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.reading, key)
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the same map: %w", ctx.Err())
		}
	}
}

func (s *sharedMaps) keep(key mapKey, shown report.Map) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.kept[key]; !ok && len(s.kept) >= maxKeptMaps {
		older := func(a, b mapKey) int { return s.kept[a].at.Compare(s.kept[b].at) }
		delete(s.kept, slices.MinFunc(slices.Collect(maps.Keys(s.kept)), older))
	}
	s.kept[key] = keptMap{shown, time.Now()}
}

func mapPoints(m report.Map) reportapi.MapPoints {
	return reportapi.MapPoints{
		Points: service.Each(m.Points, func(p report.MapPoint) reportapi.MapPoint {
			return reportapi.MapPoint{
				ID: p.ID, Title: p.Title, Status: reportapi.Status(p.Status),
				Latitude: p.Position.Latitude, Longitude: p.Position.Longitude,
			}
		}),
		Clusters: service.Each(m.Clusters, func(c report.MapCluster) reportapi.MapCluster {
			statuses := make(map[string]int64, len(c.Statuses))
			for status, n := range c.Statuses {
				statuses[string(status)] = n
			}
			return reportapi.MapCluster{Count: c.Count, Statuses: statuses, Latitude: c.Center.Latitude, Longitude: c.Center.Longitude}
		}),
	}
}
