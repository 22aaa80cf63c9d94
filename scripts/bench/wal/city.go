package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// users are the residents, and patience is more than any turn takes.
const (
	users    = 500
	patience = 5 * time.Minute
)

// A city is both services, and what was made there.
type city struct {
	services  *testbed.ReportService
	databases [2]*pgxpool.Pool // reports, notifications
	residents []string         // their tokens
	official  string
	client    *http.Client

	mu      sync.Mutex
	reports []uuid.UUID
	filers  map[uuid.UUID]int
	votes   map[uuid.UUID]int
	made    int // events
}

func newCity(ctx context.Context, b *testbed.Bed) (*city, error) {
	c := &city{filers: make(map[uuid.UUID]int), votes: make(map[uuid.UUID]int), client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: *conns}, Timeout: patience,
	}}
	var urls [2]string
	for i, of := range []migrations.Database{migrations.Report, migrations.Notification} {
		var err error
		if urls[i], err = b.Migrated(ctx, *migrate, of); err != nil {
			return nil, err
		}
		if c.databases[i], err = pgxpool.New(ctx, urls[i]); err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
		b.Defer(func() error { c.databases[i].Close(); return nil })
	}
	if err := c.keepLog(ctx, b); err != nil {
		return nil, err
	}
	broker, _, err := b.Vhost()
	if err != nil {
		return nil, err
	}
	if c.services, err = b.Services(ctx, *service, urls[0], *notification, urls[1], broker); err != nil {
		return nil, err
	}
	if c.official, err = c.services.Token("olga", "official"); err != nil {
		return nil, err
	}
	for i := range users {
		token, err := c.services.Token(fmt.Sprintf("5b6cf1a8-93d7-4b4f-8f4d-%012d", i), "resident")
		if err != nil {
			return nil, err
		}
		c.residents = append(c.residents, token)
	}
	return c, nil
}

// keepLog makes the extension that reads the log, which the server keeps until the end.
func (c *city) keepLog(ctx context.Context, b *testbed.Bed) error {
	conn, err := c.databases[0].Acquire(ctx)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	b.Defer(func() error { return conn.Hijack().Close(context.WithoutCancel(ctx)) }) // a temporary slot ends with its session
	for _, sql := range []string{
		`create extension pg_walinspect`,
		`select pg_create_physical_replication_slot('bench_' || pg_backend_pid(), true, true)`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// settle returns once every message is published, marked and handled.
func (c *city) settle(ctx context.Context) error {
	return wait.Until(ctx, patience, "everything is published and handled", func(ctx context.Context) (bool, error) {
		var pending bool
		err := c.databases[0].QueryRow(ctx, `select exists (select from outbox_messages where status <> 'published')`).Scan(&pending)
		if err != nil || pending {
			return false, err
		}
		var handled int
		err = c.databases[1].QueryRow(ctx, `select count(*) from processed_messages`).Scan(&handled)
		return handled >= c.made, err
	})
}

// file files a report, every fourth one anonymously.
func (c *city) file(k int) error {
	privacy := "public"
	if k%4 == 0 {
		privacy = "anonymous"
	}
	text, err := c.request(http.MethodPost, "/reports", c.residents[k%users], fmt.Sprintf(
		`{"title":"Streetlight %d is dark at the crossing","description":"Since Monday the whole crossing is dark after sunset.",
		"category_id":%d,"latitude":%f,"longitude":%f,"address":"Jl. Asia Afrika %d","privacy_level":%q}`,
		k, 1+k%11, -6.8-float64(k%977)/4000, 107.5+float64(k%983)/4000, k%200, privacy))
	if err != nil {
		return err
	}
	var report struct{ ID uuid.UUID }
	if err := json.Unmarshal(text, &report); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reports, c.filers[report.ID] = append(c.reports, report.ID), k%users
	return nil
}

// stride leads through all reports, and never to neighbours, which are on one page.
const stride = 7919

// vote votes on each of the latest reports once, and each tenth time on the first one.
// Nobody casts the same vote twice in a row.
func (c *city) vote(k int) error {
	c.mu.Lock()
	id := c.reports[len(c.reports)-1-k*stride%*events]
	if k%10 == 0 {
		id = c.reports[0]
	}
	n := c.votes[id]
	c.votes[id]++
	voter := (c.filers[id] + 1 + n%(users-1)) % users
	c.mu.Unlock()
	direction := []string{"upvote", "downvote"}[n/(users-1)%2]
	_, err := c.request(http.MethodPost, "/reports/"+id.String()+"/vote", c.residents[voter], `{"vote_type":"`+direction+`"}`)
	return err
}

// move takes half as many reports in hand, and then resolves them.
func (c *city) move(k int) error {
	half, status := *events/2, "in_progress"
	if k >= half {
		status = "resolved"
	}
	c.mu.Lock()
	id := c.reports[len(c.reports)-1-k*stride%half]
	c.mu.Unlock()
	_, err := c.request(http.MethodPatch, "/reports/"+id.String()+"/status", c.official, `{"status":"`+status+`","note":"A crew is on its way."}`)
	return err
}

func (c *city) request(method, path, token, body string) ([]byte, error) {
	r, err := http.NewRequest(method, "http://"+c.services.Addr+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return text, err
}
