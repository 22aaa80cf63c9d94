package admin

import (
	"net/http"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/topology"
	"github.com/cityconnect/cityconnect/platform/service"
)

// workers is what there is to see of the queues.
type workers struct {
	Items []consumer.Pool `json:"items"`
	// Findings are the checker's.
	Findings []topology.Finding `json:"findings"`
}

// listPools handles GET /admin/workers.
func (a *API) listPools(w http.ResponseWriter, _ *http.Request) error {
	return service.Encode(w, http.StatusOK, workers{listOf(a.pools.Pools()).Items, listOf(a.checker.Findings()).Items})
}

// changePool handles PATCH /admin/workers/{queue}.
func (a *API) changePool(w http.ResponseWriter, r *http.Request) error {
	change, err := service.Decode[consumer.PoolChange](r)
	if err != nil {
		return err
	}
	pool, err := a.pools.ChangePool(r.Context(), actor(r), r.PathValue("queue"), change)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, pool)
}
