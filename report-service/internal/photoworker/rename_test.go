package photoworker_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/photoworker"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A city has photos of the version before, under ids that clients chose.
type city struct {
	t      *testing.T
	pool   *pgxpool.Pool
	files  blob.Store
	worker *photoworker.Worker
}

func newCity(t *testing.T) *city {
	t.Helper()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	c := &city{t: t, pool: pgtest.Report(t)}
	if c.files, err = blob.Open(blob.Config{URL: "file://" + t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	c.worker = photoworker.New(photoworker.Dependencies{
		Store: postgres.NewPhotoChecks(postgres.NewDB(c.pool, keys, func(shards.Set) {}, postgres.Rules{})), Files: c.files, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
	})
	return c
}

// add adds a photo in a state, with pictures, and returns its id.
func (c *city) add(state string) uuid.UUID {
	c.t.Helper()
	id := uuid.Must(uuid.NewV7())
	_, err := c.pool.Exec(c.t.Context(), `
		with r as (
			insert into reports (id, title, description, category_id, privacy_level, status, version, created_at, updated_at)
			values ($1, 'Dark lamp', '', 2, 'anonymous', 'pending', 1, now(), now())
		)
		insert into photos (id, report_id, state, official, bytes, digest, changed_at)
		values ($1, $1, $2, false, 1, '', now() - interval '2 hours')`, id, state)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, size := range picture.Sizes {
		c.put(picture.Key(id, size))
	}
	return id
}

func (c *city) put(key string) {
	c.t.Helper()
	if err := c.files.Put(c.t.Context(), key, bytes.NewReader([]byte("made")), 4); err != nil {
		c.t.Fatal(err)
	}
}

// ids returns the photos' ids, and keys the names of all files, in their order.
func (c *city) ids() []uuid.UUID {
	c.t.Helper()
	var ids []uuid.UUID
	if err := c.pool.QueryRow(c.t.Context(), `select coalesce(array_agg(id order by id), '{}') from photos`).Scan(&ids); err != nil {
		c.t.Fatal(err)
	}
	return ids
}

func (c *city) keys() (keys []string) {
	c.t.Helper()
	for o, err := range c.files.List(c.t.Context(), picture.Folder) {
		if err != nil {
			c.t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	slices.Sort(keys)
	return keys
}

func (c *city) rename() {
	c.t.Helper()
	if err := c.worker.Rename(c.t.Context(), time.Now().Add(-time.Hour)); err != nil {
		c.t.Fatal(err)
	}
}

// wantRenamed wants n photos under ids that no client chose, with their pictures
// and no other file.
func (c *city) wantRenamed(n int) {
	c.t.Helper()
	var want []string
	for _, id := range c.ids() {
		if !report.IsPhotoID(id) {
			c.t.Errorf("photo %s has the id that a client chose", id)
		}
		for _, size := range picture.Sizes {
			want = append(want, picture.Key(id, size))
		}
	}
	slices.Sort(want)
	if got := c.keys(); len(want) != n*len(picture.Sizes) || !slices.Equal(got, want) {
		c.t.Errorf("files %q, want those of %d photos: %q", got, n, want)
	}
}

// Photos and their files get ids that no client chose, once each, and by any number
// of workers.
func TestRename(t *testing.T) {
	t.Parallel()
	c := newCity(t)
	for range 3 {
		c.add(string(report.PhotoReady))
		c.add(string(report.PhotoHeld))
	}
	errs := make(chan error)
	for range 3 {
		go func() { errs <- c.worker.Rename(context.WithoutCancel(t.Context()), time.Now().Add(-time.Hour)) }()
	}
	for range 3 {
		if err := <-errs; err != nil {
			t.Errorf("Rename: %v", err)
		}
	}
	c.wantRenamed(6)
}

// A worker that died on the way left files under both ids, a database that was
// restored has the earlier ids of files that were renamed. In both cases the photo
// keeps its pictures.
func TestRenameAfterACrashAndARestore(t *testing.T) {
	t.Parallel()
	c := newCity(t)
	earlier := c.add(string(report.PhotoReady))
	c.rename()
	later := c.ids()[0]
	for _, size := range picture.Sizes[:2] { // copied, and the row not changed yet
		c.put(picture.Key(earlier, size))
	}
	c.back(later, earlier)
	c.rename()
	c.wantRenamed(1)

	c.back(later, earlier) // from a backup of an earlier moment; the files stay as they are
	if err := c.worker.RemoveOrphans(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	c.rename()
	if err := c.worker.RemoveOrphans(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	c.wantRenamed(1)
	if got := c.ids()[0]; got != later {
		t.Errorf("the photo is %s, want %s again", got, later)
	}
}

// back gives a photo the id that it had before.
func (c *city) back(later, earlier uuid.UUID) {
	c.t.Helper()
	if _, err := c.pool.Exec(c.t.Context(), `update photos set id = $2 where id = $1`, later, earlier); err != nil {
		c.t.Fatal(err)
	}
}
