package admin

import (
	"net/http"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A Setup is the operations on the list of what a city needs, as far as the page cannot see
// it elsewhere.
type Setup struct {
	Store         *postgres.Setups
	MetricsReadAt func() time.Time
}

// Operations are those on the list.
func (h Setup) Operations() openapi.Operations {
	return openapi.Operations{
		"readSetup": {Handler: h.read, Timeout: service.DefaultTimeout},
		"setSetup":  {Handler: h.set, Timeout: service.DefaultTimeout},
	}
}

// read handles GET /admin/setup.
func (h Setup) read(w http.ResponseWriter, r *http.Request) error {
	setup, err := h.Store.Read(r.Context())
	done := service.Each(setup.Done, func(name string) notificationapi.SetupItem { return notificationapi.SetupItem(name) })
	return service.Answer(w, http.StatusOK, notificationapi.Setup{Done: done, LogArchivedAt: service.OrZero(setup.ArchivedAt), MetricsReadAt: h.MetricsReadAt()}, err)
}

// set handles PUT /admin/setup.
func (h Setup) set(w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[notificationapi.NewSetup](r)
	if err != nil {
		return err
	}
	done := service.Each(request.Done, func(item notificationapi.SetupItem) string { return string(item) })
	slices.Sort(done)
	if err := h.Store.Set(r.Context(), auth.Must(r).ID, slices.Compact(done)); err != nil {
		return err
	}
	return h.read(w, r)
}
