package api

import (
	"net/http"
	"net/url"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// Streams are live.
type Streams struct{ Hub *sse.Hub }

// Operations are those that answer with a stream.
func (s Streams) Operations() openapi.Operations {
	return openapi.Operations{
		"streamNotifications": {Handler: s.streamNotifications, Timeout: service.Unlimited},
		"streamFeed":          {Handler: s.streamFeed, Timeout: service.Unlimited},
	}
}

// streamNotifications handles GET /notifications/stream.
func (s Streams) streamNotifications(w http.ResponseWriter, r *http.Request) error {
	if !sameOrigin(r) {
		return service.CrossSite.New("streams are for pages of this site")
	}
	principal := auth.Must(r)
	// A token is accepted for some seconds after its end, because clocks differ.
	// Its stream would end at once, and its client come back all that time.
	if !principal.Expires.After(time.Now()) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		return service.InvalidToken.New("token not accepted: it has expired")
	}
	s.Hub.ServeNotifications(w, r, reader(r), principal.Expires)
	return nil
}

// streamFeed handles GET /feed/stream.
func (s Streams) streamFeed(w http.ResponseWriter, r *http.Request) error {
	if !sameOrigin(r) {
		return service.CrossSite.New("streams are for pages of this site")
	}
	s.Hub.ServeFeed(w, r)
	return nil
}

// sameOrigin reports whether a page of this site, or no page at all, made the
// request. http.CrossOriginProtection lets every GET pass, because it changes
// nothing; but a stream binds a connection, and returns data.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		return false
	}
	origin := r.Header.Get("Origin") // of a browser that does not send the other
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}
