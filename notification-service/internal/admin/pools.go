package admin

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// Pools are the worker pools.
type Pools interface {
	Pools() []consumer.Pool
	Waiting() []consumer.WaitingQueue
	ChangePool(ctx context.Context, actor, queue string, change consumer.PoolChange) (consumer.Pool, error)
}

// A Checker compares the broker with the topology.
type Checker interface {
	Findings() []topology.Finding
	Copies(queue string) *topology.Copies
	Nodes() []topology.Node
}

// poolOperations are those on worker pools.
func (a *API) poolOperations() openapi.Operations {
	return openapi.Operations{
		"listWorkerPools":  {Handler: a.listPools, Timeout: service.DefaultTimeout},
		"changeWorkerPool": {Handler: a.changePool, Timeout: service.DefaultTimeout},
	}
}

// listPools handles GET /admin/workers.
func (a *API) listPools(w http.ResponseWriter, _ *http.Request) error {
	return service.Encode(w, http.StatusOK, notificationapi.WorkerPools{
		Items: service.Each(a.pools.Pools(), a.pool), Waiting: service.Each(a.pools.Waiting(), waitingQueueOf),
		Findings: service.Each(a.checker.Findings(), findingOf), Nodes: service.Each(a.checker.Nodes(), nodeOf),
	})
}

// changePool handles PATCH /admin/workers/{queue}.
func (a *API) changePool(w http.ResponseWriter, r *http.Request) error {
	request, err := service.Decode[notificationapi.WorkerPoolChange](r)
	if err != nil {
		return err
	}
	change := consumer.PoolChange{Concurrency: intOf(request.Concurrency), Prefetch: intOf(request.Prefetch), Paused: request.Paused}
	pool, err := a.pools.ChangePool(r.Context(), auth.Must(r).ID, r.PathValue("queue"), change)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, a.pool(pool))
}

// pool is what operators see of p, with where its queue is in a cluster.
func (a *API) pool(p consumer.Pool) notificationapi.WorkerPool {
	pool := poolOf(p)
	if copies := a.checker.Copies(p.Queue); copies != nil {
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
