//go:build linux

package main

import (
	"context"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// alarmsEvery is how often the groups are asked.
const alarmsEvery = 5 * time.Second

// alarms are the messages that groups of consumers say they have lost. Where the ledger
// has lost none, each of them is false.
type alarms struct {
	missing map[string]int64 // by the path that was asked last
	highest int64            // of all, at any time
}

// watch asks both services until ctx ends.
func (a *alarms) watch(ctx context.Context, operator *client.Client) {
	for ctx.Err() == nil {
		a.ask(ctx, operator)
		_ = wait.For(ctx, alarmsEvery) // the loop ends with ctx
	}
}

// ask asks both services once. One that is away said last what it said before.
func (a *alarms) ask(ctx context.Context, operator *client.Client) {
	for _, path := range []string{"/admin/reports/reconciliation", "/admin/notifications/reconciliation"} {
		var answer struct{ Groups []struct{ Missing int64 } }
		if operator.Do(ctx, http.MethodGet, path, nil, &answer) != nil {
			continue
		}
		a.missing[path] = 0
		for _, g := range answer.Groups {
			a.missing[path] += g.Missing
		}
	}
	a.highest = max(a.highest, a.sum())
}

// sum returns how many messages are missing.
func (a *alarms) sum() (n int64) {
	for _, missing := range a.missing {
		n += missing
	}
	return n
}
