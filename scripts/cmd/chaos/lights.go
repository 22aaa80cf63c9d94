//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

const (
	lightsEvery = time.Second
	// trueWithin is how long a light, and /readyz, may say what was so before: 10 s, and 3 s
	// on a machine that the stack, its people and the faults share.
	trueWithin = 13 * time.Second
	readyz     = "readyz"
)

// shows are the lights that cannot be good while a server does not run. A replica that does
// not run has another beside it, and shows nowhere.
var shows = map[string][]string{
	"postgres": {"reports database", "notifications database", readyz},
	"rabbitmq": {"reports broker", "reports relay", "notifications broker"},
}

// lights compare what operators are shown with what is broken: the lights of the console,
// its findings, and /readyz of each replica.
type lights struct {
	stack    *stack
	operator *client.Client

	mu       sync.Mutex
	round    int                  // counts the faults
	whole    time.Time            // since when everything runs, zero during a fault
	down     map[string]time.Time // since when a server does not run
	looks    int
	clear    time.Time       // when a look began that found all lights good
	untrue   map[string]bool // counted once in each round
	findings map[string]bool // while everything runs
}

func newLights(s *stack, operator *client.Client) *lights {
	return &lights{stack: s, operator: operator, whole: time.Now(), down: map[string]time.Time{}, untrue: map[string]bool{}, findings: map[string]bool{}}
}

// breaks says that a fault begins, mended that it is over.
func (l *lights) breaks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round, l.whole = l.round+1, time.Time{}
}

func (l *lights) mended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = time.Now()
}

// settle waits until a look after the end of the fault found all lights good, or until they
// have been counted as untrue.
func (l *lights) settle(ctx context.Context) {
	for wait.For(ctx, lightsEvery) == nil {
		l.mu.Lock()
		over := l.clear.After(l.whole) || time.Since(l.whole) > trueWithin+5*lightsEvery
		l.mu.Unlock()
		if over {
			return
		}
	}
}

// watch looks each second until ctx ends.
func (l *lights) watch(ctx context.Context) {
	for ctx.Err() == nil {
		l.look(ctx)
		_ = wait.For(ctx, lightsEvery) // the loop ends with ctx
	}
}

func (l *lights) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*trueWithin)
	defer cancel()
	began := time.Now()
	l.noteServers(began)
	states := make(map[string]string)
	answered := 0
	for _, service := range []string{"reports", "notifications"} {
		var health struct {
			Parts []struct{ Name, State, Cause string }
		}
		if l.operator.Do(ctx, http.MethodGet, "/admin/"+service+"/health", nil, &health) != nil {
			continue // the page says that it does not answer
		}
		answered++
		for _, part := range health.Parts {
			states[service+" "+part.Name] = strings.TrimSpace(part.State + " " + part.Cause)
		}
	}
	for replica, state := range l.ready(ctx) {
		states[readyz+" "+replica] = state
	}
	var pools struct{ Findings []struct{ What string } }
	_ = l.operator.Do(ctx, http.MethodGet, "/admin/workers", nil, &pools) // without an answer there are none

	l.noteServers(time.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	settled := !l.whole.IsZero() && began.Sub(l.whole) > trueWithin
	all := answered == 2
	for name, state := range states {
		good := !strings.HasPrefix(state, "bad") && !strings.HasPrefix(state, "unknown")
		all = all && good
		if good && l.mustBeBad(name, began) || !good && settled {
			l.untrue[fmt.Sprintf("fault %d: %s is %s", l.round, name, state)] = true
		}
	}
	if all {
		l.clear = began
	}
	if settled {
		for _, f := range pools.Findings {
			l.findings[f.What] = true
		}
	}
}

// mustBeBad reports whether a server that the light shows did not run for long before.
func (l *lights) mustBeBad(light string, before time.Time) bool {
	for server, since := range l.down {
		if before.Sub(since) > trueWithin && slices.ContainsFunc(shows[server], func(name string) bool { return strings.HasPrefix(light, name) }) {
			return true
		}
	}
	return false
}

// noteServers notes which servers do not run, or are stopped. A cluster does without one.
func (l *lights) noteServers(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for server := range shows {
		if server == "postgres" && len(l.stack.nodes) > 0 || server == "rabbitmq" && len(l.stack.brokers) > 0 {
			continue
		}
		pid, err := proc.ReadPID(filepath.Join(l.stack.dir, server+".pid"))
		if err == nil && proc.Alive(pid) && !proc.Stopped(pid) {
			delete(l.down, server)
		} else if l.down[server].IsZero() {
			l.down[server] = now
		}
	}
}

// ready returns what each replica that runs answers at /readyz.
func (l *lights) ready(ctx context.Context) map[string]string {
	states := make(map[string]string)
	for _, service := range []string{"report", "notification"} {
		files, _ := filepath.Glob(filepath.Join(l.stack.dir, service+"-[0-9]*.pid")) // the pattern is well formed
		for _, file := range files {
			pid, err := proc.ReadPID(file)
			if err != nil || proc.Stopped(pid) {
				continue
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener(pid)+"/readyz", http.NoBody)
			if err != nil {
				continue
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				continue // it starts, or has ended
			}
			_ = answer.Body.Close()
			if states[filepath.Base(file)] = "good"; answer.StatusCode != http.StatusOK {
				states[filepath.Base(file)] = fmt.Sprint("bad ", answer.StatusCode)
			}
		}
	}
	return states
}

// listener returns an address at which the process listens; both of a service's have /readyz.
func listener(pid int) string {
	all, _ := connections(pid) // of one that has ended there are none
	for _, link := range descriptors(pid) {
		for _, c := range all {
			if c.socket == link && c.state == listening {
				return fmt.Sprint("127.0.0.1:", port(c.local))
			}
		}
	}
	return "127.0.0.1:0"
}
