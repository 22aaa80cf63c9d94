package api

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Push is what the API does about devices; it pushes nothing. The zero Push is
// that of a city without a key to push with.
type Push struct {
	Devices *postgres.Devices
	Keys    *push.Keys
	Config  *push.Config
}

// errNoPush answers everything about devices where nothing is pushed.
var errNoPush = fault.New(fault.NotFound, "this city sends nothing to devices")

// Operations are those about devices.
func (s Push) Operations() openapi.Operations {
	operations := openapi.Operations{
		"readPushKey":  {Handler: s.readPushKey, Timeout: service.DefaultTimeout},
		"listDevices":  {Handler: s.listDevices, Timeout: service.DefaultTimeout},
		"addDevice":    {Handler: service.Decoded(s.addDevice), Timeout: service.DefaultTimeout},
		"removeDevice": {Handler: s.removeDevice, Timeout: service.DefaultTimeout},
	}
	if s.Devices == nil {
		refuse(operations, errNoPush)
	}
	return operations
}

// readPushKey handles GET /push/key.
func (s Push) readPushKey(w http.ResponseWriter, _ *http.Request) error {
	return service.Encode(w, http.StatusOK, notificationapi.PushKey{Key: s.Config.PublicKey()})
}

// listDevices handles GET /me/push.
func (s Push) listDevices(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Devices.List(r.Context(), reader(r))
	return service.Answer(w, http.StatusOK, notificationapi.Devices{Devices: service.Each(list, describeDevice)}, err)
}

// describeDevice returns a device as its owner sees it: never its address.
func describeDevice(d push.Device) notificationapi.Device {
	return notificationapi.Device{ID: d.ID, Label: d.Label, CreatedAt: d.CreatedAt.UTC(), LastUsedAt: service.OrZero(d.LastUsedAt).UTC()}
}

// base64url turns base64 into base64url without padding, of which most browsers and
// libraries write the latter.
var base64url = strings.NewReplacer("+", "-", "/", "_", "=", "")

// addDevice handles POST /me/push.
func (s Push) addDevice(w http.ResponseWriter, r *http.Request, request notificationapi.NewDevice) error {
	subscription := push.Subscription{
		Endpoint: request.Endpoint, P256DH: base64url.Replace(request.Keys.P256Dh), Auth: base64url.Replace(request.Keys.Auth),
	}
	language := wording.Preferred(r.Header.Get("Accept-Language"))
	if request.Language != "" {
		var err error
		if language, err = wording.ParseLanguage(string(request.Language), "/language"); err != nil {
			return err
		}
	}
	host, err := s.Config.CheckEndpoint(subscription.Endpoint)
	if err != nil {
		return err
	}
	if err := subscription.Check(); err != nil {
		return err
	}
	d := push.Device{ID: uuid.Must(uuid.NewV7()), Lane: host, Language: language, Label: push.Label(r.UserAgent())}
	d.Endpoint, d.Keys = s.Keys.Seal(d.ID, subscription)
	kept, added, err := s.Devices.Add(r.Context(), reader(r), d, s.Keys.EndpointHashes(subscription.Endpoint))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if added {
		status = http.StatusCreated
	}
	return service.Encode(w, status, describeDevice(kept))
}

// removeDevice handles DELETE /me/push/{id}.
func (s Push) removeDevice(w http.ResponseWriter, r *http.Request) error {
	return service.Done(w, s.Devices.Remove(r.Context(), reader(r), openapi.PathID(r, "id")))
}
