package geocoder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jellydator/ttlcache/v3"
)

// A farSide is a geocoder that is not ours. It keeps what it was asked.
type farSide struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
}

func newFarSide(t *testing.T, answer http.HandlerFunc) *farSide {
	t.Helper()
	f := &farSide{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, r)
		f.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *farSide) requests() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *farSide) client(t *testing.T, path string, city *Box) *Client {
	t.Helper()
	var a Address
	if err := a.UnmarshalText([]byte(f.URL + path)); err != nil {
		t.Fatal(err)
	}
	return New(a, city, 1000)
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
}

var bogor = &Box{106.777, -6.604, 106.934, -6.444}

const (
	photonFound = `{"type":"FeatureCollection","features":[
		{"type":"Feature","geometry":{"type":"Point","coordinates":[106.8,-6.59]},"properties":{"name":"Jalan Salak","district":"Babakan","city":"Bogor","osm_key":"highway"}},
		{"type":"Feature","geometry":{"type":"Point","coordinates":[106.801,-6.591]},"properties":{"name":"Jalan Salak","district":"Babakan","city":"Bogor"}},
		{"type":"Feature","geometry":{"type":"Point","coordinates":[106.81,-6.58]},"properties":{"street":"Jalan Pajajaran","housenumber":"3","city":"Bogor"}},
		{"type":"Feature","geometry":{"type":"Point","coordinates":[13.4,52.5]},"properties":{"name":"Jalan Salak","city":"Berlin"}}]}`
	nominatimFound = `{"type":"FeatureCollection","geocoding":{"version":"0.1.0"},"features":[
		{"type":"Feature","properties":{"geocoding":{"place_id":1,"label":"Kebun Raya, Jalan Juanda 13, Bogor","name":"Kebun Raya","street":"Jalan Juanda","housenumber":"13","city":"Bogor"}},
		 "geometry":{"type":"Point","coordinates":[106.797,-6.5976]}}]}`
)

// Both kinds of geocoders are asked in their own words and understood; what they
// find outside of the city, or twice, is left out.
func TestSearch(t *testing.T) {
	t.Parallel()
	photon := newFarSide(t, says(photonFound))
	found, err := photon.client(t, "/geo/api?key=geheim", bogor).Search(t.Context(), "  jalan   salak ", "id")
	want := []Place{{"Jalan Salak", "Babakan, Bogor", -6.59, 106.8}, {"Jalan Pajajaran 3", "Bogor", -6.58, 106.81}}
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("Photon found %v (error %v), want %v", found, err, want)
	}
	if got := photon.requests()[0].URL; got.Path != "/geo/api" ||
		got.Query().Encode() != "bbox=106.777%2C-6.604%2C106.934%2C-6.444&key=geheim&limit=6&q=jalan+salak" {
		t.Errorf("Photon was asked %s", got)
	}
	nominatim := newFarSide(t, says(nominatimFound))
	found, err = nominatim.client(t, "/search", bogor).Search(t.Context(), "Kebun Raya", "id")
	want = []Place{{"Kebun Raya, Jalan Juanda 13", "Bogor", -6.5976, 106.797}}
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("Nominatim found %v (error %v), want %v", found, err, want)
	}
	if q := nominatim.requests()[0].URL.Query(); q.Get("format") != "geocodejson" || q.Get("bounded") != "1" || q.Get("accept-language") != "id" {
		t.Errorf("Nominatim was asked %v", q)
	}
}

// A kept answer takes as long as it took: its time does not say that somebody has
// looked for the same.
func TestKeptAnswersTakeAsLong(t *testing.T) {
	t.Parallel()
	const takes = 200 * time.Millisecond
	far := newFarSide(t, func(w http.ResponseWriter, _ *http.Request) { <-time.After(takes); fmt.Fprint(w, photonFound) })
	c := far.client(t, "/api", nil)
	for range 2 {
		began := time.Now()
		if found, err := c.Search(t.Context(), "salak", "en"); err != nil || len(found) == 0 {
			t.Fatalf("found %v (error %v)", found, err)
		}
		if took := time.Since(began); took < takes*3/4 {
			t.Errorf("answered after %v, want it to take about %v", took, takes)
		}
	}
	if n := len(far.requests()); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

// A position is sent to about ten metres, and a repeated question is answered by us.
func TestAt(t *testing.T) {
	t.Parallel()
	far := newFarSide(t, says(nominatimFound))
	c := far.client(t, "/search", bogor)
	for _, nearby := range []float64{-6.597612, -6.597639} {
		found, err := c.At(t.Context(), nearby, 106.7970001, "en")
		if err != nil || found == nil || found.Name != "Kebun Raya, Jalan Juanda 13" {
			t.Errorf("found %v (error %v), want Kebun Raya", found, err)
		}
	}
	asked := far.requests()
	if len(asked) != 1 || asked[0].URL.Path != "/reverse" || asked[0].URL.Query().Get("lat") != "-6.5976" || asked[0].URL.Query().Get("lon") != "106.7970" {
		t.Errorf("asked %d times, first %s, want once, to four digits", len(asked), asked[0].URL)
	}
	nothing := newFarSide(t, says(`{"error":"Unable to geocode"}`))
	if found, err := nothing.client(t, "/search", nil).At(t.Context(), 0, 0, "en"); err != nil || found != nil {
		t.Errorf("found %v (error %v) where nothing is", found, err)
	}
}

// The far side learns what is looked for, and nothing of who looks.
func TestNobodyIsNamed(t *testing.T) {
	t.Parallel()
	far := newFarSide(t, says(photonFound))
	if _, err := far.client(t, "/api", nil).Search(t.Context(), "salak", "en"); err != nil {
		t.Fatal(err)
	}
	want := http.Header{"User-Agent": {"CityConnect"}, "Accept": {"application/json"}, "Accept-Encoding": {"gzip"}}
	if got := far.requests()[0].Header; !reflect.DeepEqual(got, want) {
		t.Errorf("the headers are %v, want %v and nothing else", got, want)
	}
}

// An unusable answer is the geocoder's failure, reported without its address.
func TestFarSideFails(t *testing.T) {
	t.Parallel()
	elsewhere := newFarSide(t, says(photonFound))
	for name, answer := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"another place": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/api", http.StatusFound)
		},
		"no JSON":    says(`<html>`),
		"other JSON": says(`[]`),
		"too much":   says(`{"type":"FeatureCollection","features":[` + strings.Repeat(" ", maxAnswer) + `]}`),
		"half of it": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			fmt.Fprint(w, `{"type"`)
		},
		"nothing, ever": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := newFarSide(t, answer)
			c := far.client(t, "/api?key=geheim", nil)
			c.timeout = 500 * time.Millisecond
			found, err := c.Search(t.Context(), "salak", "en")
			if found != nil || !errors.Is(err, ErrAway) || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("found %v (error %v), want ErrAway without the address", found, err)
			}
		})
	}
	t.Run("it is not there", func(t *testing.T) {
		t.Parallel()
		far := newFarSide(t, says(""))
		far.Close()
		if _, err := far.client(t, "/api?key=geheim", nil).Search(t.Context(), "salak", "en"); !errors.Is(err, ErrAway) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("error %v, want ErrAway without the address", err)
		}
	})
	if n := len(elsewhere.requests()); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
}

// Many who want the same have it asked for once; more than it may be asked is
// refused, and what was found stays known.
func TestLimits(t *testing.T) {
	t.Parallel()
	begin := make(chan struct{})
	far := newFarSide(t, func(w http.ResponseWriter, _ *http.Request) { <-begin; fmt.Fprint(w, photonFound) })
	c := far.client(t, "/api", nil)
	c.limit.SetLimit(0.0001)
	c.limit.SetBurst(1)
	leaves, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := c.Search(leaves, "salak", "en"); left <- err }()
	for len(far.requests()) == 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("it was not asked")
		}
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the client that left got %v", err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if found, err := c.Search(t.Context(), "SALAK", "en"); err != nil || len(found) == 0 {
				t.Errorf("found %v (error %v)", found, err)
			}
		})
	}
	close(begin)
	all.Wait()
	if n := len(far.requests()); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	if _, err := c.Search(t.Context(), "something else", "en"); !errors.Is(err, ErrBusy) {
		t.Errorf("beyond the limit: %v, want ErrBusy", err)
	}
	if _, err := c.Search(t.Context(), "salak", "en"); err != nil {
		t.Errorf("what is known: %v", err)
	}
	const key = "s en salak"
	item := c.cache.Get(key)
	if item == nil || item.TTL() != kept {
		t.Fatalf("the answer is cached as %+v, want it for %s", item, kept)
	}
	c.cache.Set(key, item.Value(), time.Nanosecond)
	if _, err := c.Search(t.Context(), "salak", "en"); !errors.Is(err, ErrBusy) {
		t.Errorf("what is too old: %v, want it to be asked for again, which the limit refuses", err)
	}
	for i := range maxCached + 10 {
		c.cache.Set(fmt.Sprint(i), answer{}, ttlcache.DefaultTTL)
	}
	if n := c.cache.Len(); n != maxCached {
		t.Errorf("%d answers are kept, want %d", n, maxCached)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "nominatim.example.org", "ftp://x.org/search", "https:///search", "https://x.org/", "https://x.org/searching", "https://x.org/search#a", "http://%zz/api"} {
		if err := new(Address).UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
	var a Address
	if err := a.UnmarshalText([]byte("https://x.org/geo/api/?key=1")); err != nil || a.Server() != "https://x.org" {
		t.Fatal(err)
	}
	// A parameter cannot become another one, nor another address.
	got := a.with(true, url.Values{"lat": {"1&host=evil"}})
	if got != "https://x.org/geo/reverse?key=1&lat=1%26host%3Devil" {
		t.Errorf("the address is %s", got)
	}
}
