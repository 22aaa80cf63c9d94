package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
)

// borderPoints is how many points a side of an area has: with 200 areas, a file of about
// the size that the service takes at most.
const borderPoints = 200

// SetAreas uploads n areas that fill a box, west, south, east, north, as an operator does.
// Their borders wind, so that no bound has all of a place.
func (s *ReportService) SetAreas(ctx context.Context, n int, box [4]float64) error {
	columns := int(math.Ceil(math.Sqrt(float64(n))))
	rows := (n + columns - 1) / columns
	wide, high := (box[2]-box[0])/float64(columns), (box[3]-box[1])/float64(rows)
	features := make([]any, n)
	for i := range features {
		west, south := box[0]+float64(i%columns)*wide, box[1]+float64(i/columns)*high
		name := fmt.Sprintf("area-%d", i)
		features[i] = map[string]any{
			"type":       "Feature",
			"properties": map[string]any{"code": name, "names": map[string]string{"en": name, "id": name}},
			"geometry":   map[string]any{"type": "Polygon", "coordinates": [][][2]float64{winding(west, south, wide, high)}},
		}
	}
	body, err := json.Marshal(map[string]any{"type": "FeatureCollection", "features": features})
	if err != nil {
		return fmt.Errorf("encode areas: %w", err)
	}
	return s.Operate(ctx, http.MethodPut, "/reports/areas", "application/geo+json", body, nil)
}

// winding is the ring of a rectangle whose sides bend by a tenth. Neighbours bend alike.
func winding(west, south, wide, high float64) (ring [][2]float64) {
	digits := func(degrees float64) float64 { return math.Round(degrees*1e6) / 1e6 }
	for side := range 4 {
		for i := range borderPoints {
			along := float64(i) / borderPoints
			if side >= 2 { // the way back
				along = 1 - along
			}
			bend := math.Sin(2*math.Pi*along) / 10
			at := [4][2]float64{{along, bend}, {1 + bend, along}, {along, 1 + bend}, {bend, along}}[side]
			ring = append(ring, [2]float64{digits(west + at[0]*wide), digits(south + at[1]*high)})
		}
	}
	return append(ring, ring[0])
}

// Operate makes a request as an operator, and reads the answer into out, unless that is nil.
func (s *ReportService) Operate(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	token, err := s.Token("olaf", "operator")
	if err != nil {
		return fmt.Errorf("sign a token: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("If-Match", "*")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %.500s", method, path, response.Status, answer)
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}
