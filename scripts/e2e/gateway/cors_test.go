package gateway_test

import (
	"fmt"
	"net/http"
	"testing"
)

// A page of another site reads what needs no account, errors included, with conditions that
// a browser asks for first; nothing else, and never with cookies.
func TestOpenDataForPagesOfOthers(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.URL.RawQuery == "q=%01" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, "{}")
	})}, []string{away})
	for path, open := range map[string]bool{
		"/open-data/reports.csv": true, "/open-data/reports.geojson?status=pending": true, "/open-data/reports.csv?q=%01": true, "/open311/v2/requests.json": true,
		"/open311/discovery.xml": true, "/areas": true, "/areas?geometry=none": true,
		"/reports": false, "/categories": false, "/notifications": false, "/reports/areas": false, "/areasx": false, "/photos/1/320.jpg": false,
	} {
		origin, policy, methods, headers, status := "", "same-origin", "", "", 0
		if open {
			origin, policy, methods, headers, status = "*", "cross-origin", "GET, HEAD, POST", "*", http.StatusNoContent
		}
		res, _ := g.do(t, "GET", g.URL+path, nil, "Origin", "https://map.example")
		if h := res.Header; h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Expose-Headers") != origin || h.Get("Cross-Origin-Resource-Policy") != policy ||
			h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("GET %s: %v", path, h)
		}
		res, _ = g.do(t, "OPTIONS", g.URL+path, nil, "Origin", "https://map.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "if-none-match")
		if h := res.Header; h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Methods") != methods || h.Get("Access-Control-Allow-Headers") != headers ||
			status != 0 && res.StatusCode != status {
			t.Errorf("OPTIONS %s: %d %v", path, res.StatusCode, h)
		}
	}
	broken := start(t, []string{away}, []string{away})
	if res, _ := broken.do(t, "GET", broken.URL+"/open-data/reports.csv", nil); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("without a replica: %d %v", res.StatusCode, res.Header)
	}
}
