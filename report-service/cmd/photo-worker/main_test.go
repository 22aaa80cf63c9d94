package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/processtest"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// patience ends a test that would not succeed any more. It measures nothing.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { processtest.Main(m, main) }

// A hundred kills lose no photo: each ends as ready or refused, those that are
// ready have all their pictures, and no other file is left.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := 100
	if testing.Short() {
		kills = 5
	}
	s := newSystem(t)
	w := s.start()
	s.connect()
	good, bad := newPicture(t, 160, 120), []byte("no picture")
	for range kills {
		for range 3 {
			s.upload(good)
		}
		s.upload(bad)
		// It dies with some in hand, and does not fall behind by more than these.
		left := 1 + rand.IntN(3)
		s.eventually("most photos are judged", func() bool {
			return s.count(`select count(*) from photos where state = 'checking'`) <= left
		})
		w.Kill()
		w.Start()
	}
	s.eventually("every photo is judged", func() bool { return s.count(`select count(*) from photos where state = 'checking'`) == 0 })
	s.eventually("nothing is left", func() bool {
		return s.count(`select count(*) from photos where upload is not null`) == 0 && len(s.files("quarantine")) == 0
	})
	if code := w.Stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	ready := s.count(`select count(*) from photos where state = 'ready'`)
	refused := s.count(`select count(*) from photos where state = 'refused' and reason = 'unsupported'`)
	failed := s.count(`select count(*) from photos where state = 'refused' and reason = 'failed'`) // in hand at three kills
	announced := s.count(`select count(*) from outbox_messages where routing_key in ('report.photo.ready', 'report.photo.refused')`)
	t.Logf("kills=%d photos=%d ready=%d refused=%d failed=%d announced=%d pictures=%d", kills, s.photos, ready, refused, failed, announced, len(s.files("photos")))
	if ready+refused+failed != s.photos || announced != s.photos || refused < kills-failed {
		t.Errorf("%d photos: %d ready, %d refused, %d failed, %d announced", s.photos, ready, refused, failed, announced)
	}
	if got, want := len(s.files("photos")), len(picture.Sizes)*ready; got != want {
		t.Errorf("%d pictures, want %d", got, want)
	}
}

// While the storage is away photos wait, and no attempt is spent; afterwards each
// is judged.
func TestStorageIsAway(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	w := s.start()
	s.connect()
	away := s.dir + ".away"
	file := newPicture(t, 400, 300)
	s.upload(file)
	s.eventually("the first photo is ready", func() bool { return s.count(`select count(*) from photos where state = 'ready'`) == 1 })
	// A folder that cannot be read is an error that is no missing file.
	if err := os.Rename(filepath.Join(s.dir, "quarantine"), away); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "quarantine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const n = 5
	for range n {
		s.uploadTo(away, file)
	}
	s.eventually("the worker notices", func() bool { return strings.Contains(w.Log(), "the storage cannot be used") })
	if err := os.Remove(filepath.Join(s.dir, "quarantine")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, filepath.Join(s.dir, "quarantine")); err != nil {
		t.Fatal(err)
	}
	s.eventually("every photo is ready", func() bool { return s.count(`select count(*) from photos where state = 'ready'`) == n+1 })
	if letters := s.count(`select count(*) from dead_letters`); letters > 0 {
		t.Errorf("%d dead letters, want none", letters)
	}
}

// A worker that is told to stop finishes what it has in hand.
func TestStops(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	w := s.start()
	s.connect()
	file := newPicture(t, 800, 600)
	for range 5 {
		for range 4 {
			s.upload(file)
		}
		if code := w.Stop(); code != 0 {
			t.Fatalf("exit code %d, want 0", code)
		}
		w.Start()
	}
	s.eventually("every photo is ready", func() bool { return s.count(`select count(*) from photos where state <> 'ready'`) == 0 })
}

// Files of no photo go once they are old, and others stay.
func TestOrphans(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	for age, folder := range map[time.Duration][]string{
		25 * time.Hour: {"quarantine/", "tmp/", "photos/" + uuid.NewString() + "/"},
		time.Hour:      {"quarantine/", "tmp/", "photos/" + uuid.NewString() + "/"},
	} {
		for _, dir := range folder {
			path := filepath.Join(s.dir, dir, uuid.NewString())
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Now(), time.Now().Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.start()
	s.eventually("the old ones are gone", func() bool {
		return len(s.files("quarantine")) == 1 && len(s.files("photos")) == 1 && len(s.files("tmp")) == 1
	})
}

// newPicture returns a JPEG file of noise, which takes the worker a while.
func newPicture(t testing.TB, width, height int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.SetRGBA(x, y, color.RGBA{uint8(rand.Uint32()), uint8(x), uint8(y), 255})
		}
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, m, nil); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// A system is a broker, a database and a folder, with a report.
type system struct {
	t         *testing.T
	pool      *pgxpool.Pool
	rabbit    string
	key       string
	dir       string
	store     *postgres.Store
	publisher *rabbit.Publisher
	photos    int
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t, pool: pgtest.Report(t), rabbit: rabbittest.Vhost(t), key: event.NewKey("k1"), dir: filepath.Join(t.TempDir(), "photos")}
	keys, err := event.ParseKeyring(s.key)
	if err != nil {
		t.Fatal(err)
	}
	s.store = postgres.NewStore(s.pool, keys, func(shards.Set) {})
	return s
}

// upload adds a photo to a report of its own, as report-service does.
func (s *system) upload(file []byte) {
	s.t.Helper()
	s.uploadTo(filepath.Join(s.dir, "quarantine"), file)
}

// uploadTo puts the file into a folder that may be the quarantine later.
func (s *system) uploadTo(quarantine string, file []byte) {
	s.t.Helper()
	ctx := s.t.Context()
	reportID := uuid.New()
	_, err := s.pool.Exec(ctx, `
		with r as (
			insert into reports (id, title, description, category_id, privacy_level, status, version, created_at, updated_at)
			values ($1, 'Dark lamp', '', 2, 'anonymous', 'pending', 1, now(), now())
		)
		insert into reporters (report_id, reporter_id) values ($1, $2)`, reportID, reportID.String())
	if err != nil {
		s.t.Fatal(err)
	}
	key := picture.QuarantineKey()
	name := filepath.Join(quarantine, filepath.Base(key))
	if err := os.MkdirAll(quarantine, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, file, 0o600); err != nil {
		s.t.Fatal(err)
	}
	u := report.Upload{ID: uuid.New(), ReportID: reportID, Bytes: int64(len(file)), Hash: sha256.Sum256(file), Key: key}
	if _, _, err := s.store.AddPhoto(ctx, u, report.PhotoUser{ID: reportID.String()}); err != nil {
		s.t.Fatal(err)
	}
	s.photos++
	var id uuid.UUID
	var body []byte
	err = s.pool.QueryRow(ctx, `select id, convert_to(payload::text, 'UTF8') from outbox_messages where report_id = $1`, reportID).Scan(&id, &body)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.publish(id.String(), body); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) publish(id string, body []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), patience)
	defer cancel()
	return s.publisher.PublishWait(ctx, event.Topology{}.Exchange(), string(event.PhotoUploadedKey), amqp.Publishing{
		MessageId: id, Type: string(event.PhotoUploadedKey), ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: body,
	})
}

// connect opens the connection that publishes, once the queue is there.
func (s *system) connect() {
	s.t.Helper()
	conn, err := rabbit.Dial(context.WithoutCancel(s.t.Context()), rabbit.Config{URL: s.rabbit, Name: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() }) // the broker may be gone
	s.eventually("the queue is there", func() bool {
		ch, err := conn.Channel()
		if err != nil {
			s.t.Fatal(err)
		}
		defer ch.Close()
		q, err := ch.QueueDeclarePassive(event.Topology{}.Queue(event.PhotoUploadedKey), true, false, false, false, nil)
		return err == nil && q.Consumers > 0 // bound, too: bindings come before consumers
	})
	if s.publisher, err = rabbit.NewPublisher(conn, 256); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) count(sql string) (n int) {
	s.t.Helper()
	if err := s.pool.QueryRow(s.t.Context(), sql).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// files returns the files below a folder of the storage.
func (s *system) files(folder string) (names []string) {
	s.t.Helper()
	files, err := blob.Open(blob.Config{URL: "file://" + s.dir})
	if err != nil {
		s.t.Fatal(err)
	}
	for o, err := range files.List(s.t.Context(), folder+"/") {
		if err != nil {
			s.t.Fatal(err)
		}
		names = append(names, o.Key)
	}
	return names
}

func (s *system) eventually(what string, ok func() bool) {
	s.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			s.t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

// start runs a worker and waits until it is ready.
func (s *system) start() *processtest.Process {
	s.t.Helper()
	return processtest.Start(s.t, processtest.Config{Address: "OPERATIONS_ADDR", Env: []string{
		"DATABASE_URL=" + s.pool.Config().ConnString(), "RABBITMQ_URL=" + s.rabbit, "RECIPIENT_KEY=" + s.key,
		"PHOTO_STORE=file://" + s.dir, "LOG_LEVEL=warn",
	}})
}
