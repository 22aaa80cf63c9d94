// Package geocoder searches a city's geocoder for addresses, by their names and by
// their positions.
//
// Browsers ask us, and we ask it: the geocoder never receives who searches for a
// place, nor from where. It gets words or a position to about ten metres, and
// nothing else. Its address is the operator's alone; a client's text is only ever a
// parameter. Answers are kept for a while, concurrent questions are asked once, and
// all is limited in size, time and number.
package geocoder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jellydator/ttlcache/v3"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/config"
)

const (
	// timeout is how long somebody who types waits.
	timeout   = 3 * time.Second
	maxAnswer = 256 << 10 // bytes
	maxText   = 200       // letters of a name that are passed on
	// Readers who type search for the same again within minutes. At most maxCached
	// answers, of about a kilobyte each, are kept for this long, and not longer,
	// because they show what people looked for.
	kept      = 15 * time.Minute
	maxCached = 2000
	// MaxFound is how many places a search finds.
	MaxFound = 6
	// exact is to how many degrees a position is passed on: about eleven metres.
	exact = 1e-4
)

// Why there is no answer.
var (
	// ErrBusy says that the geocoder gets as many requests as it may.
	ErrBusy = errors.New("the geocoder is asked too often")
	// ErrAway says that the geocoder gave no answer that can be used.
	ErrAway = errors.New("the geocoder does not answer")
)

// A Place has a name and a position.
type Place struct {
	Name    string // such as "Jalan Salak 12"
	Context string // where that is, such as "Babakan, Bogor"; may be empty
	Latitude,
	Longitude float64
}

// A Box is a part of the world by its edges in degrees: west, south, east, north.
type Box [4]float64

func (b Box) has(latitude, longitude float64) bool {
	return longitude >= b[0] && longitude <= b[2] && latitude >= b[1] && latitude <= b[3]
}

// A Config says which geocoder a city has. See docs/configuration.md.
type Config struct {
	URL *Address `env:"GEOCODER_URL" example:"https://nominatim.example.org/search"`
	// Rate is how many requests a second a replica makes.
	Rate float64 `env:"GEOCODER_RATE" envDefault:"5"`
}

// Validate returns everything that is wrong with c.
func (c Config) Validate() []config.Fault {
	var faults config.Faults
	faults.Check(c.Rate >= 0.1 && c.Rate <= 1000, "GEOCODER_RATE", "0.1 to 1000 requests a second, such as 5")
	return faults
}

// An Address is where a geocoder is searched. Its last part says which kind it
// is: search for Nominatim, api for Photon.
type Address struct{ search url.URL }

// errAddress says what an address must be. Its cause would show the address, and
// perhaps a key in it.
var errAddress = errors.New("must be the URL of a geocoder's search, such as https://nominatim.example.org/search or https://photon.example.org/api")

// UnmarshalText reads the URL of a geocoder's search.
func (a *Address) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	if err != nil {
		return errAddress
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.Fragment != "" {
		return errAddress
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	if kind := path.Base(u.Path); kind != "search" && kind != "api" {
		return errAddress
	}
	a.search = *u
	return nil
}

// Server returns the server alone, without the parameters, of which one may be a key.
func (a *Address) Server() string {
	if a == nil {
		return ""
	}
	return a.search.Scheme + "://" + a.search.Host
}

func (a *Address) isPhoton() bool { return path.Base(a.search.Path) == "api" }

// with returns the address with parameters beside its own, of which a key may be one.
func (a *Address) with(reverse bool, parameters url.Values) string {
	u := a.search
	if reverse {
		u.Path = path.Join(path.Dir(u.Path), "reverse")
	}
	own := u.Query()
	maps.Copy(own, parameters)
	u.RawQuery = own.Encode()
	return u.String()
}

// A Client searches a geocoder. It is safe for concurrent use.
type Client struct {
	address Address
	city    *Box // nil is everywhere
	http    *http.Client
	limit   *rate.Limiter
	asking  singleflight.Group

	cache   *ttlcache.Cache[string, answer]
	timeout time.Duration // the constant, except in tests
}

type answer struct {
	places []Place
	took   time.Duration // to get it
}

// New returns a Client of the geocoder at address, for places in city. It asks
// perSecond times a second at most.
func New(address Address, city *Box, perSecond float64) *Client {
	return &Client{
		address: address, city: city, timeout: timeout,
		http: &http.Client{
			// Where it would send us to is nobody's choice but the operator's.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		limit: rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond))),
		cache: ttlcache.New(
			ttlcache.WithTTL[string, answer](kept), ttlcache.WithDisableTouchOnHit[string, answer](), ttlcache.WithCapacity[string, answer](maxCached)),
	}
}

// Search returns the places in the city that words name, the best first, with
// names in language where there are such.
func (c *Client) Search(ctx context.Context, words, language string) ([]Place, error) {
	words = strings.Join(strings.Fields(words), " ")
	if words == "" {
		return nil, nil
	}
	p := url.Values{"q": {words}, "limit": {strconv.Itoa(MaxFound)}}
	if c.city != nil {
		var corners string
		for i, n := range c.city {
			corners += strings.Repeat(",", min(i, 1)) + strconv.FormatFloat(n, 'f', -1, 64) // without an exponent
		}
		if c.address.isPhoton() {
			p.Set("bbox", corners)
		} else {
			p.Set("viewbox", corners)
			p.Set("bounded", "1")
		}
	}
	return c.ask(ctx, "s "+language+" "+strings.ToLower(words), false, p, language)
}

// At returns what there is at a position, in language where it has a name in
// it; nil if nothing is there.
func (c *Client) At(ctx context.Context, latitude, longitude float64, language string) (*Place, error) {
	near := func(degrees float64) string {
		return strconv.FormatFloat(math.Round(degrees/exact)*exact, 'f', 4, 64)
	}
	p := url.Values{"lat": {near(latitude)}, "lon": {near(longitude)}}
	places, err := c.ask(ctx, "a "+language+" "+p.Encode(), true, p, language)
	if err != nil || len(places) == 0 {
		return nil, err
	}
	return &places[0], nil
}

// ask returns the answer that is cached under key, and otherwise asks for it, once for
// all callers at the same time.
func (c *Client) ask(ctx context.Context, key string, reverse bool, p url.Values, language string) ([]Place, error) {
	if item := c.cache.Get(key); item != nil {
		// It takes as long as it took: at once, it would say that somebody has looked
		// for the same lately.
		known := item.Value()
		return known.places, backoff.Sleep(ctx, time.Duration(float64(known.took)*(0.8+0.4*rand.Float64())))
	}
	if c.address.isPhoton() {
		if language == "en" { // it refuses languages that it does not have
			p.Set("lang", language)
		}
	} else {
		p.Set("format", "geocodejson")
		p.Set("addressdetails", "1")
		p.Set("accept-language", language)
	}
	// One who leaves must not take the answer from the others.
	result := c.asking.DoChan(key, func() (any, error) {
		if !c.limit.Allow() {
			return nil, ErrBusy
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		began := time.Now()
		places, err := c.fetch(ctx, c.address.with(reverse, p))
		if err != nil {
			return nil, err
		}
		c.cache.Set(key, answer{places, time.Since(began)}, ttlcache.DefaultTTL)
		return places, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-result:
		places, _ := r.Val.([]Place)
		return places, r.Err
	}
}

// fetch makes a request that says nothing of the person who asks. Its errors show
// neither the address, which may have a key, nor the question.
func (c *Client) fetch(ctx context.Context, address string) ([]Place, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: no request can be made of its address", ErrAway)
	}
	r.Header.Set("User-Agent", "CityConnect")
	r.Header.Set("Accept", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok && failed.Timeout() {
			return nil, fmt.Errorf("%w within %s", ErrAway, c.timeout)
		}
		return nil, fmt.Errorf("%w: no connection", ErrAway)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: status %d", ErrAway, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil || len(body) > maxAnswer {
		return nil, fmt.Errorf("%w: its answer is cut off or too long", ErrAway)
	}
	var found collection
	if json.Unmarshal(body, &found) != nil || found.Type != "FeatureCollection" {
		// Nominatim has nothing at a position, and says so in an object of its own.
		if nothing := (struct{ Error json.RawMessage }{}); json.Unmarshal(body, &nothing) == nil && nothing.Error != nil {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: its answer is not GeoJSON", ErrAway)
	}
	return found.places(c.city), nil
}

// A collection is the GeoJSON of both kinds of geocoders. Nominatim's has its
// properties one level deeper.
type collection struct {
	Type     string
	Features []struct {
		Geometry struct {
			Type        string
			Coordinates []float64
		}
		Properties struct {
			properties
			Geocoding properties
		}
	}
}

// properties have the same names in both.
type properties struct {
	Name, Street, HouseNumber          string
	Locality, District, Suburb, County string
	City, Label                        string
}

// places returns what lies in the city.
func (c collection) places(city *Box) []Place {
	var places []Place
	for _, f := range c.Features {
		at := f.Geometry.Coordinates
		if f.Geometry.Type != "Point" || len(at) < 2 || city != nil && !city.has(at[1], at[0]) {
			continue
		}
		p := f.Properties.properties
		if p == (properties{}) {
			p = f.Properties.Geocoding
		}
		place := p.place()
		place.Latitude, place.Longitude = at[1], at[0]
		// One street has many pieces.
		known := slices.ContainsFunc(places, func(other Place) bool { return other.Name == place.Name && other.Context == place.Context })
		if place.Name != "" && !known && len(places) < MaxFound {
			places = append(places, place)
		}
	}
	return places
}

func (p properties) place() Place {
	name := p.Name
	if street := strings.TrimSpace(p.Street + " " + p.HouseNumber); name == "" {
		name = street
	} else if p.Street != "" && p.Street != name {
		name += ", " + street
	}
	if name == "" {
		name, _, _ = strings.Cut(p.Label, ",")
	}
	var around []string
	for _, part := range []string{p.Locality, p.Suburb, p.District, p.City} {
		if part != "" && part != name && !slices.Contains(around, part) {
			around = append(around, part)
		}
	}
	return Place{Name: line(name), Context: line(strings.Join(around, ", "))}
}

// line returns text as a line of bounded length.
func line(text string) string {
	letters := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text))
	return strings.TrimSpace(string(letters[:min(len(letters), maxText)]))
}
