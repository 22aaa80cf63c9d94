package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/geocoder"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
)

// gazetteer is a geocoder that knows one street, and fails at will.
type gazetteer struct {
	asked []string
	err   error
}

func (g *gazetteer) Search(_ context.Context, words, language string) ([]geocoder.Place, error) {
	g.asked = append(g.asked, words+" "+language)
	return []geocoder.Place{{Name: "Jalan Salak 12", Context: "Babakan", Latitude: -6.59, Longitude: 106.8}}, g.err
}

func (g *gazetteer) At(_ context.Context, latitude, longitude float64, language string) (*geocoder.Place, error) {
	g.asked = append(g.asked, fmt.Sprint(latitude, " ", longitude, " ", language))
	return nil, g.err
}

// Anybody may look for a place; a geocoder that is away or busy says when to try
// again, and nothing of itself.
func TestPlaces(t *testing.T) {
	t.Parallel()
	g := &gazetteer{}
	s := newServer(t, func(p *parts) { p.Places.Geocoder = g })
	var found notificationapi.Places
	s.do(call{method: "GET", path: "/map/places?q=Salak+12&language=id"}, http.StatusOK, &found)
	if len(found.Places) != 1 || found.Places[0].Name != "Jalan Salak 12" || found.Places[0].Longitude != 106.8 {
		t.Errorf("found %+v", found)
	}
	s.do(call{method: "GET", path: "/map/places/at?latitude=-6.59&longitude=106.8"}, http.StatusOK, &found)
	if len(found.Places) != 0 || len(g.asked) != 2 || g.asked[0] != "Salak 12 id" || g.asked[1] != "-6.59 106.8 en" {
		t.Errorf("found %+v, asked %q", found, g.asked)
	}
	for _, wrong := range []string{"?q=a", "", "?q=salak&language=Indonesia", "/at?latitude=91&longitude=0", "/at?latitude=1", "?q=salak&user=ann"} {
		s.do(call{method: "GET", path: "/map/places" + wrong}, http.StatusBadRequest, nil)
	}
	for err, want := range map[error]int{
		fmt.Errorf("%w: no connection", geocoder.ErrAway): http.StatusServiceUnavailable,
		geocoder.ErrBusy:                http.StatusTooManyRequests,
		errors.New("something of ours"): http.StatusInternalServerError,
	} {
		g.err = err
		if header := s.do(call{method: "GET", path: "/map/places?q=salak"}, want, nil); want != http.StatusInternalServerError && header.Get("Retry-After") == "" {
			t.Errorf("%v: no Retry-After", err)
		}
		s.do(call{method: "GET", path: "/map/places/at?latitude=0&longitude=0"}, want, nil)
	}
}

// One address that asks too often gets 429, and others are answered; a network of IPv6 is one.
func TestPlacesOfAnAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Places.Geocoder = &gazetteer{} })
	ask := func(from string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/map/places?q=salak", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", from)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for _, tt := range []struct {
		address string
		other   bool // than those before
	}{
		{"192.0.2.1", true}, {"192.0.2.1", false}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8::5", true}, {"2001:db8:0:0:7::8", false}, {"2001:db8:0:1::5", true}, {"unknown", true}, {"neither", false},
	} {
		answered := 0
		for answered < 500 && ask(tt.address) == http.StatusOK {
			answered++
		}
		if (answered >= 20) != tt.other || answered == 500 {
			t.Errorf("%s is answered %d times at once, want it to be another address: %t", tt.address, answered, tt.other)
		}
	}
}

func TestNoGeocoder(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.do(call{method: "GET", path: "/map/places?q=salak"}, http.StatusNotFound, nil)
	s.do(call{method: "GET", path: "/map/places/at?latitude=0&longitude=0"}, http.StatusNotFound, nil)
}
