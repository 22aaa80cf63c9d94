package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cityconnect/cityconnect/platform/client"
)

//go:embed data/bloomington311.json
var bloomington []byte

// How far the sample's city is from the one whose map the local stack has: from
// the middle of Bloomington to that of Bogor, in degrees.
const (
	northward = -6.5860 - 39.1500
	eastward  = 106.8200 + 86.5200
)

// maxTitle keeps a line of the account within a terminal.
const maxTitle = 44

// A request is one of the sample, in the form of Open311 GeoReport v2.
type request struct {
	Service     string   `json:"service_name"`
	Description string   `json:"description"`
	Address     string   `json:"address"`
	Latitude    *float64 `json:"lat"`
	Longitude   *float64 `json:"long"`
	Status      string   `json:"status"` // open or closed
}

// categories maps what Bloomington calls a service to our category.
var categories = map[string]string{
	"Biking & Walking":                "Sidewalks",
	"Blocked Street, Alley, Sidewalk": "Sidewalks",
	"Graffiti":                        "Graffiti",
	"Parking Permits":                 "Traffic and parking",
	"Potholes, Other Street Repair":   "Roads and potholes",
	"Street Lights":                   "Street lights and signals",
	"Traffic Related Complaints":      "Traffic and parking",
	"Traffic Signals":                 "Street lights and signals",
	"Traffic Suggestions":             "Traffic and parking",
	"Weeds":                           "Parks and trees",
	"Yard Waste":                      "Waste and illegal dumping",
}

// loadSample returns the requests that come with the program.
func loadSample() ([]request, error) {
	var sample []request
	if err := json.Unmarshal(bloomington, &sample); err != nil {
		return nil, fmt.Errorf("read the sample reports: %w", err)
	}
	return sample, nil
}

// report returns r as our API wants it. ids are the categories by name.
func (r request) report(ids map[string]int32, privacy string) client.NewReport {
	category, ok := categories[r.Service]
	if !ok {
		category = client.OtherCategory
	}
	report := client.NewReport{
		Title:        r.title(),
		Description:  strings.ReplaceAll(r.Description, "\r\n", "\n"),
		CategoryID:   ids[category],
		Address:      r.Address,
		PrivacyLevel: client.PrivacyLevel(privacy),
	}
	// The city wrote 0, 0 where it did not know.
	if r.Latitude != nil && r.Longitude != nil && *r.Latitude != 0 {
		report.Latitude, report.Longitude = new(*r.Latitude+northward), new(*r.Longitude+eastward)
	}
	return report
}

// title makes a line of what the resident wrote, or of the service.
func (r request) title() string {
	line, _, _ := strings.Cut(strings.TrimSpace(r.Description), "\r\n")
	if line == "" {
		line = r.Service
		if r.Address != "" {
			line += ", " + r.Address
		}
	}
	return shorten(line, maxTitle)
}

// shorten cuts s after a whole word where it is longer than limit.
func shorten(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	cut := string(runes[:limit-1])
	if i := strings.LastIndexByte(cut, ' '); i > limit/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,.;:") + "…"
}
