package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/geocoder"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Geocoder finds the city's addresses.
type Geocoder interface {
	Search(ctx context.Context, words, language string) ([]geocoder.Place, error)
	At(ctx context.Context, latitude, longitude float64, language string) (*geocoder.Place, error)
}

// geocoderBusy is the answer when the geocoder gets as many requests as it may.
var geocoderBusy = service.ProblemType{
	Status: service.TooManyRequests.Status, Name: service.TooManyRequests.Name, Title: service.TooManyRequests.Title,
	RetryAfter: time.Second,
}

// Places are the addresses of the city.
type Places struct{ Geocoder Geocoder } // nil in a city without one

// Operations are those about addresses.
func (s Places) Operations() openapi.Operations {
	turns := ratelimit.New(placeLimit)
	operations := openapi.Operations{
		"findPlaces": {Handler: s.findPlaces, Timeout: service.DefaultTimeout},
		"namePlace":  {Handler: s.namePlace, Timeout: service.DefaultTimeout},
	}
	for id, o := range operations {
		o.Handler = perAddress(turns, o.Handler)
		operations[id] = o
	}
	if s.Geocoder == nil {
		refuse(operations, fault.New(fault.NotFound, "this city has no geocoder"))
	}
	return operations
}

// placeLimit is how often one address may ask: far more than somebody types, and a part of
// what the city may ask.
var placeLimit = ratelimit.Limit{Turns: 20, Period: 10 * time.Second}

// perAddress refuses an address that asks more often than anybody types: the requests
// of the geocoder are for all of the city. All IPv6 addresses of a /64 count as one, and so
// do texts that are not addresses.
func perAddress(turns *ratelimit.Limiter, h service.HandlerFunc) service.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if turns.Take(service.Network(service.ClientAddress(r)).String()) > 0 {
			return geocoderBusy.New("your address asks too often")
		}
		return h(w, r)
	}
}

// findPlaces handles GET /map/places.
func (s Places) findPlaces(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	found, err := s.Geocoder.Search(r.Context(), q.Get("q"), q.Get("language"))
	return sendPlaces(w, found, err)
}

// namePlace handles GET /map/places/at.
func (s Places) namePlace(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	latitude, err := strconv.ParseFloat(q.Get("latitude"), 64)
	longitude, otherErr := strconv.ParseFloat(q.Get("longitude"), 64)
	if err = errors.Join(err, otherErr); err != nil {
		return fmt.Errorf("position that the document let pass: %w", err)
	}
	place, err := s.Geocoder.At(r.Context(), latitude, longitude, q.Get("language"))
	if place == nil {
		return sendPlaces(w, nil, err)
	}
	return sendPlaces(w, []geocoder.Place{*place}, err)
}

func sendPlaces(w http.ResponseWriter, found []geocoder.Place, err error) error {
	switch {
	case errors.Is(err, geocoder.ErrBusy):
		return geocoderBusy.New("the geocoder is asked too often")
	case errors.Is(err, geocoder.ErrAway):
		return &fault.Error{Kind: fault.Unavailable, Msg: "the geocoder does not answer", Err: err}
	case err != nil:
		return err
	}
	return service.Encode(w, http.StatusOK, notificationapi.Places{Places: service.Each(found, func(p geocoder.Place) notificationapi.Place {
		return notificationapi.Place{Name: p.Name, Context: p.Context, Latitude: p.Latitude, Longitude: p.Longitude}
	})})
}
