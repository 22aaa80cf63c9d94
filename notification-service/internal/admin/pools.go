package admin

import (
	"net/http"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// Pools are the worker pools, and the broker that their queues are at.
type Pools struct {
	Consumer *consumer.Consumer
	Checker  *topology.Checker
}

// Operations are those on worker pools.
func (a Pools) Operations() openapi.Operations {
	return openapi.Operations{
		"listWorkerPools":  {Handler: a.listPools, Timeout: service.DefaultTimeout},
		"changeWorkerPool": {Handler: service.Decoded(a.changePool), Timeout: service.DefaultTimeout},
	}
}

// listPools handles GET /admin/workers.
func (a Pools) listPools(w http.ResponseWriter, _ *http.Request) error {
	return service.Encode(w, http.StatusOK, notificationapi.WorkerPools{
		Items: service.Each(a.Consumer.Pools(), a.pool), Waiting: service.Each(a.Consumer.Waiting(), waitingQueueOf),
		Findings: service.Each(a.Checker.Findings(), findingOf), Nodes: service.Each(a.Checker.Nodes(), nodeOf),
	})
}

// changePool handles PATCH /admin/workers/{queue}.
func (a Pools) changePool(w http.ResponseWriter, r *http.Request, request notificationapi.WorkerPoolChange) error {
	change := consumer.PoolChange{Concurrency: intOf(request.Concurrency), Prefetch: intOf(request.Prefetch), Paused: request.Paused}
	pool, err := a.Consumer.ChangePool(r.Context(), auth.Must(r).ID, r.PathValue("queue"), change)
	return service.Answer(w, http.StatusOK, a.pool(pool), err)
}

// pool is what operators see of p, with where its queue is in a cluster.
func (a Pools) pool(p consumer.Pool) notificationapi.WorkerPool {
	pool := poolOf(p)
	if copies := a.Checker.Copies(p.Queue); copies != nil {
		pool.Copies = new(copiesOf(*copies))
	}
	return pool
}

func intOf(n *int32) *int {
	if n == nil {
		return nil
	}
	return new(int(*n))
}
