package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A DeviceStore keeps the browsers of readers who want pushes.
type DeviceStore interface {
	List(ctx context.Context, reader notification.Reader) ([]push.Device, error)
	Add(ctx context.Context, reader notification.Reader, d push.Device, hashes [][]byte) (kept push.Device, added bool, err error)
	Remove(ctx context.Context, reader notification.Reader, id uuid.UUID) error
	Kinds(ctx context.Context, reader notification.Reader) ([]string, error)
	SetKinds(ctx context.Context, reader notification.Reader, kinds []string) error
}

// A Push is what the API does about devices; it pushes nothing. The zero Push is
// that of a city without a key to push with.
type Push struct {
	Devices DeviceStore
	Keys    *push.Keys
	Config  *push.Config
}

// errNoPush answers everything about devices where nothing is pushed.
var errNoPush = fault.New(fault.NotFound, "this city sends nothing to devices")

// pushOperations are those about devices.
func (s *server) pushOperations() openapi.Operations {
	operations := openapi.Operations{
		"readPushKey":  {Handler: s.readPushKey, Timeout: service.DefaultTimeout},
		"listDevices":  {Handler: s.listDevices, Timeout: service.DefaultTimeout},
		"addDevice":    {Handler: s.addDevice, Timeout: service.DefaultTimeout},
		"removeDevice": {Handler: s.removeDevice, Timeout: service.DefaultTimeout},
	}
	if s.Push.Devices == nil {
		refuse(operations, errNoPush)
	}
	return operations
}

// readPushKey handles GET /push/key.
func (s *server) readPushKey(w http.ResponseWriter, _ *http.Request) error {
	return service.Encode(w, http.StatusOK, notificationapi.PushKey{Key: s.Push.Config.PublicKey()})
}

// listDevices handles GET /me/push.
func (s *server) listDevices(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Push.Devices.List(r.Context(), reader(r))
	if err != nil {
		return err
	}
	body := notificationapi.Devices{Devices: make([]notificationapi.Device, len(list))}
	for i, d := range list {
		body.Devices[i] = describeDevice(d)
	}
	return service.Encode(w, http.StatusOK, body)
}

// describeDevice returns a device as its owner sees it: never its address.
func describeDevice(d push.Device) notificationapi.Device {
	described := notificationapi.Device{ID: d.ID, Label: d.Label, CreatedAt: d.CreatedAt.UTC()}
	if d.LastUsedAt != nil {
		described.LastUsedAt = d.LastUsedAt.UTC()
	}
	return described
}

// base64url turns base64 into base64url without padding, of which most browsers and
// libraries write the latter.
var base64url = strings.NewReplacer("+", "-", "/", "_", "=", "")

// addDevice handles POST /me/push.
func (s *server) addDevice(w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[notificationapi.NewDevice](r)
	if err != nil {
		return err
	}
	subscription := push.Subscription{
		Endpoint: request.Endpoint, P256DH: base64url.Replace(request.Keys.P256Dh), Auth: base64url.Replace(request.Keys.Auth),
	}
	language := wording.Language(request.Language)
	if language == "" {
		language = wording.Preferred(r.Header.Get("Accept-Language"))
	}
	host, err := s.Push.Config.CheckEndpoint(subscription.Endpoint)
	if err != nil {
		return err
	}
	if err := subscription.Check(); err != nil {
		return err
	}
	d := push.Device{ID: uuid.Must(uuid.NewV7()), Lane: host, Language: language, Label: push.Label(r.UserAgent())}
	d.Endpoint, d.Keys = s.Push.Keys.Seal(d.ID, subscription)
	kept, added, err := s.Push.Devices.Add(r.Context(), reader(r), d, s.Push.Keys.EndpointHashes(subscription.Endpoint))
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
func (s *server) removeDevice(w http.ResponseWriter, r *http.Request) error {
	if err := s.Push.Devices.Remove(r.Context(), reader(r), openapi.PathID(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
