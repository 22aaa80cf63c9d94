package report_test

import (
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func TestCheckPosition(t *testing.T) {
	t.Parallel()
	city := &report.Box{West: 106.777, South: -6.604, East: 106.934, North: -6.444}
	pacific := &report.Box{West: 178, South: -20, East: -178, North: -10}
	for name, tt := range map[string]struct {
		at   *report.Position
		city *report.Box
		ok   bool
	}{
		"in the city":            {&report.Position{Latitude: -6.6, Longitude: 106.8}, city, true},
		"on its edge":            {&report.Position{Latitude: -6.604, Longitude: 106.777}, city, true},
		"south of it":            {&report.Position{Latitude: -6.605, Longitude: 106.8}, city, false},
		"at 0, 0":                {&report.Position{}, city, false},
		"nowhere":                {nil, city, true},
		"without a city":         {&report.Position{Latitude: 90}, nil, true},
		"beyond the date line":   {&report.Position{Latitude: -15, Longitude: -179}, pacific, true},
		"not beyond that line":   {&report.Position{Latitude: -15, Longitude: 0}, pacific, false},
		"before the date's line": {&report.Position{Latitude: -15, Longitude: 179}, pacific, true},
	} {
		err := report.CheckPosition(tt.at, tt.city)
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "outside")) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A position has the digits of a metre, and is the same when it is rounded again.
func TestNewPosition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ given, want report.Position }{
		{report.Position{Latitude: -6.914712345678901, Longitude: 107.609812345678901}, report.Position{Latitude: -6.91471, Longitude: 107.60981}},
		{report.Position{Latitude: 6.000004999, Longitude: -0.000005001}, report.Position{Latitude: 6, Longitude: -0.00001}},
		{report.Position{Latitude: 90, Longitude: -180}, report.Position{Latitude: 90, Longitude: -180}},
		{report.Position{Latitude: 0.1 + 0.2, Longitude: 106.8}, report.Position{Latitude: 0.3, Longitude: 106.8}},
	} {
		got := report.NewPosition(tt.given.Latitude, tt.given.Longitude)
		if *got != tt.want || *report.NewPosition(got.Latitude, got.Longitude) != tt.want {
			t.Errorf("%v became %v, want %v", tt.given, *got, tt.want)
		}
	}
}
