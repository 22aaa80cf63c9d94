package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/processtest"
)

func TestMain(m *testing.M) { processtest.Main(m, main) }

// startProcess runs the service in a process of its own, which a test may pause.
func startProcess(t *testing.T, databaseURL string) (*running, *processtest.Process) {
	t.Helper()
	env := environment(t, databaseURL, "amqp://guest:guest@"+nowhere+"/")
	cfg := processtest.Config{Address: "HTTP_ADDR", Ready: "/livez"} // it has no broker
	for name, value := range env {
		if name != cfg.Address {
			cfg.Env = append(cfg.Env, name+"="+value)
		}
	}
	p := processtest.Start(t, cfg)
	return &running{t: t, env: env, url: p.URL(""), logs: new(lockedBuffer)}, p
}

// send makes a request and returns its status, or 0 if there was no answer in
// time. It then closes the connection.
func (r *running) send(within time.Duration, method, path, token, body string) int {
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return 0
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// A replica freezes. Its clients give up, repeat at another what they asked
// for, and then change their minds. Once the replica goes on, it must not make
// a change that was given up: what the other accepted later counts.
func TestFrozenReplicaOverwritesNothing(t *testing.T) {
	t.Parallel()
	const clients = 40
	pool := pgtest.Report(t)
	frozen, process := startProcess(t, pool.Config().ConnString())
	other := start(t, pool.Config().ConnString(), "amqp://guest:guest@"+nowhere+"/")
	official := other.token("official")
	voters, reports := make([]string, clients), make([]uuid.UUID, clients)
	for i := range clients {
		voters[i], reports[i] = other.token("resident"), other.filed()
	}

	process.Pause()
	var wg sync.WaitGroup
	for i := range clients {
		path := "/reports/" + reports[i].String()
		wg.Go(func() {
			frozen.send(time.Second, "POST", path+"/vote", voters[i], `{"vote_type":"upvote"}`)
			other.wantSent("POST", path+"/vote", voters[i], `{"vote_type":"upvote"}`)
			other.wantSent("POST", path+"/vote", voters[i], `{"vote_type":"downvote"}`)
		})
		wg.Go(func() {
			frozen.send(time.Second, "PATCH", path+"/status", official, `{"status":"in_progress"}`)
			other.wantSent("PATCH", path+"/status", official, `{"status":"in_progress"}`)
			other.wantSent("PATCH", path+"/status", official, `{"status":"pending"}`)
		})
	}
	wg.Wait()
	process.Resume()
	frozen.eventually("it goes on", func() bool {
		status, _ := frozen.get("/livez")
		return status == http.StatusOK
	})
	if code := process.Stop(); code != 0 { // it ends after what it has in hand
		t.Errorf("exit code %d, want 0", code)
	}

	var votes, statuses int
	err := pool.QueryRow(t.Context(), `
		select (select count(*) from votes where value > 0), (select count(*) from reports where status <> 'pending')`).Scan(&votes, &statuses)
	if err != nil {
		t.Fatal(err)
	}
	if votes+statuses > 0 {
		t.Errorf("%d of %d votes and %d statuses are those that were given up", votes, clients, statuses)
	}
}

// A change that waits for a lock when its replica freezes is refused once the
// replica goes on after the deadline, though its client is still there.
func TestFrozenPastTheDeadline(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	r, process := startProcess(t, pool.Config().ConnString())
	id, voter := r.filed(), r.token("resident")
	lock, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback(context.WithoutCancel(t.Context()))
	if _, err := lock.Exec(t.Context(), `select from reports where id = $1 for update`, id); err != nil {
		t.Fatal(err)
	}
	status := make(chan int, 1)
	vote := func() int {
		return r.send(eventually.Patience, "POST", "/reports/"+id.String()+"/vote", voter, `{"vote_type":"upvote"}`)
	}
	go func() { status <- vote() }()
	r.eventually("the vote waits for the lock", func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), `
			select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waiting)
		return err == nil && waiting
	})

	process.Pause()
	if err := lock.Rollback(t.Context()); err != nil { // the lock is the frozen replica's now
		t.Fatal(err)
	}
	<-time.After(6 * time.Second) // beyond api.changeTimeout, by the clock of another process
	process.Resume()
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", got)
	}
	var votes int
	if err := pool.QueryRow(t.Context(), `select count(*) from votes`).Scan(&votes); err != nil || votes != 0 {
		t.Errorf("%d votes, error %v; want none", votes, err)
	}
	if got := vote(); got != http.StatusOK {
		t.Errorf("the vote again: status %d, want 200", got)
	}
}

// wantSent makes a request that must succeed.
func (r *running) wantSent(method, path, token, body string) {
	if got := r.send(eventually.Patience, method, path, token, body); got != http.StatusOK {
		r.t.Errorf("%s %s %s: status %d, want 200", method, path, body, got)
	}
}

// filed files a report and returns its id.
func (r *running) filed() uuid.UUID {
	r.t.Helper()
	status, answer := r.file()
	var rep struct {
		ID uuid.UUID `json:"id"`
	}
	if err := json.Unmarshal(answer, &rep); err != nil || status != http.StatusCreated {
		r.t.Fatalf("status %d, %v in %s", status, err, answer)
	}
	return rep.ID
}
