package api

import (
	"net/http"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// maxMapPoints is how many reports a map shows one by one.
const maxMapPoints = 150

// listMapPoints handles GET /map/points. Its answer is the same for everyone.
func (h reportHandlers) listMapPoints(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	var filter report.Filter
	if err := readFilter(query, &filter); err != nil {
		return err
	}
	zoom, err := intParam(r, "zoom")
	if err != nil {
		return err
	}
	if query.Has("q") && len(filter.Words) == 0 { // nothing but punctuation
		return service.Encode(w, http.StatusOK, mapOf(report.Map{}))
	}
	shown, err := h.reports.Map(r.Context(), filter, report.GridOf(*filter.Box, zoom), maxMapPoints)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, mapOf(shown))
}

func mapOf(m report.Map) MapPoints {
	out := MapPoints{Points: make([]MapPoint, len(m.Points)), Clusters: make([]MapCluster, len(m.Clusters))}
	for i, p := range m.Points {
		out.Points[i] = MapPoint{
			ID: p.ID, Title: p.Title, Status: Status(p.Status),
			Latitude: p.Position.Latitude, Longitude: p.Position.Longitude,
		}
	}
	for i, c := range m.Clusters {
		out.Clusters[i] = MapCluster{Count: c.Count, Latitude: c.Center.Latitude, Longitude: c.Center.Longitude}
	}
	return out
}
