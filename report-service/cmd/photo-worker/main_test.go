package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/processtest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

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
		eventually.True(s.t, "most photos are judged", func() bool {
			return s.count(`select count(*) from photos where state = 'checking'`) <= left
		})
		w.Kill()
		w.Start()
	}
	eventually.True(s.t, "every photo is judged", func() bool { return s.count(`select count(*) from photos where state = 'checking'`) == 0 })
	eventually.True(s.t, "nothing is left", func() bool {
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

// While the storage is unavailable photos wait, and no attempt is spent;
// afterwards each gets its verdict.
func TestStorageIsAway(t *testing.T) {
	t.Parallel()
	for name, storage := range map[string]func(*system) (away, back func()){
		"quarantine that cannot be read": unreadableQuarantine,
		"folder that is gone":            missingFolder,
		"server that is stopped":         stoppedServer,
		"disk that is full":              fullDisk,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t)
			away, back := storage(s)
			w := s.start()
			s.connect()
			file := newPicture(t, 400, 300)
			s.upload(file)
			eventually.True(s.t, "the first photo is ready", func() bool { return s.count(`select count(*) from photos where state = 'ready'`) == 1 })
			const n = 5
			var messages []amqp.Publishing
			for range n {
				messages = append(messages, s.add(file))
			}
			away()
			for _, m := range messages {
				s.publish(m)
			}
			eventually.True(s.t, "the worker notices", func() bool { return strings.Contains(w.Log(), "the storage cannot be used") })
			back()
			eventually.True(s.t, "every photo is ready", func() bool { return s.count(`select count(*) from photos where state = 'ready'`) == n+1 })
			if letters := s.count(`select count(*) from dead_letters`); letters > 0 {
				t.Errorf("%d dead letters, want none", letters)
			}
		})
	}
}

// unreadableQuarantine puts a file in the place of the folder: reading from below it
// fails with an error other than a missing file, also for root.
func unreadableQuarantine(s *system) (away, back func()) {
	quarantine := filepath.Join(s.dir, "quarantine")
	away = func() {
		s.must(os.Rename(quarantine, quarantine+".away"))
		s.must(os.WriteFile(quarantine, nil, 0o600))
	}
	return away, func() {
		s.must(os.Remove(quarantine))
		s.must(os.Rename(quarantine+".away", quarantine))
	}
}

// missingFolder replaces the storage's folder by an empty one, as if a disk had
// been unmounted.
func missingFolder(s *system) (away, back func()) {
	away = func() {
		s.must(os.Rename(s.dir, s.dir+".away"))
		s.must(os.Mkdir(s.dir, 0o750))
	}
	return away, func() {
		s.must(os.Remove(s.dir))
		s.must(os.Rename(s.dir+".away", s.dir))
	}
}

// fullDisk has a small disk of its own, which another program fills: uploads can
// be read, and no picture can be written.
func fullDisk(s *system) (away, back func()) {
	s.must(os.MkdirAll(s.dir, 0o750))
	if err := syscall.Mount("tmpfs", s.dir, "tmpfs", 0, "size=16m"); err != nil {
		s.t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	s.t.Cleanup(func() { s.must(syscall.Unmount(s.dir, syscall.MNT_DETACH)) })
	other := filepath.Join(s.dir, "of-another-program")
	away = func() {
		err := os.WriteFile(other, make([]byte, 16<<20), 0o600) // as much as there is room
		if !errors.Is(err, syscall.ENOSPC) {
			s.t.Fatalf("fill the disk: error %v, want that it is full", err)
		}
	}
	return away, func() { s.must(os.Remove(other)) }
}

// stoppedServer has a bucket at a server that is stopped and started.
func stoppedServer(s *system) (away, back func()) {
	backend := s3mem.New()
	s.must(backend.CreateBucket("photos"))
	handler := gofakes3.New(backend).Server()
	server := httptest.NewServer(handler)
	address := server.Listener.Addr().String()
	s.url = "s3://photos?endpoint=http://" + address + "&region=us-east-1"
	s.t.Cleanup(func() { server.Close() })
	return server.Close, func() {
		l, err := net.Listen("tcp", address)
		s.must(err)
		server = &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
		server.Start()
	}
}

// An infected upload is refused as such, and shown to nobody. While the scanner
// is unavailable nothing is shown unscanned, and nothing fails.
func TestVirusScanner(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	scanner := startScanner(t)
	s.env = []string{"CLAMD_URL=tcp://" + scanner.address}
	w := s.start()
	s.connect()
	clean := newPicture(t, 400, 300)
	s.upload(clean)
	s.upload(append(bytes.Clone(clean), eicar...))
	eventually.True(s.t, "both are judged", func() bool { return s.count(`select count(*) from photos where state <> 'checking'`) == 2 })
	if n := s.count(`select count(*) from photos where reason = 'infected'`); n != 1 {
		t.Errorf("%d photos are refused as infected, want 1", n)
	}
	scanner.stop()
	const n = 3
	for range n {
		s.upload(clean)
	}
	eventually.True(s.t, "the worker notices", func() bool { return strings.Contains(w.Log(), "the virus scanner cannot be used") })
	if ready := s.count(`select count(*) from photos where state = 'ready'`); ready != 1 {
		t.Errorf("%d photos are ready, want the scanned one alone", ready)
	}
	scanner.listen()
	eventually.True(s.t, "every photo is ready", func() bool { return s.count(`select count(*) from photos where state = 'ready'`) == 1+n })
	if letters := s.count(`select count(*) from dead_letters`); letters > 0 {
		t.Errorf("%d dead letters, want none", letters)
	}
}

// eicar is what every scanner finds, and what harms nobody. In two parts, so that
// none finds it here.
const eicar = `X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-` + `STANDARD-ANTIVIRUS-TEST-FILE!$H+H*`

// A scanner answers as clamd does (clamd(8)), and knows one signature. The tests
// of package clamd have a real one.
type scanner struct {
	t        *testing.T
	address  string
	listener net.Listener
}

func startScanner(t *testing.T) *scanner {
	t.Helper()
	s := &scanner{t: t, address: "127.0.0.1:0"}
	s.listen()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *scanner) listen() {
	s.t.Helper()
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.listener, s.address = l, l.Addr().String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go scan(conn)
		}
	}()
}

func (s *scanner) stop() { _ = s.listener.Close() } // it may be closed already

func scan(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	command, err := r.ReadString(0)
	if err != nil {
		return
	}
	if command != "zINSTREAM\x00" {
		_, _ = io.WriteString(conn, "PONG\x00")
		return
	}
	var file bytes.Buffer
	for {
		var size uint32
		if err := binary.Read(r, binary.BigEndian, &size); err != nil || size == 0 {
			break
		}
		if _, err := io.CopyN(&file, r, int64(size)); err != nil {
			return
		}
	}
	answer := "stream: OK\x00"
	if bytes.Contains(file.Bytes(), []byte(eicar)) {
		answer = "stream: Eicar-Test FOUND\x00"
	}
	_, _ = io.WriteString(conn, answer)
}

// Uploaders receive each stage of their photo once, in a form that only
// notification-service can read.
func TestTellsStages(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.start()
	s.connect()
	ch, err := s.conn.Channel()
	s.must(err)
	s.must(ch.ExchangeDeclare(event.Topology{}.ProgressExchange(), amqp.ExchangeFanout, true, false, false, false, nil))
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	s.must(err)
	s.must(ch.QueueBind(q.Name, "", event.Topology{}.ProgressExchange(), false, nil))
	deliveries, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	s.must(err)
	keys, err := event.ParseKeyring(s.key)
	s.must(err)
	s.upload(newPicture(t, 400, 300))
	s.upload([]byte("no picture"))
	eventually.True(s.t, "both are judged", func() bool { return s.count(`select count(*) from photos where state <> 'checking'`) == 2 })
	told := make(map[uuid.UUID][]event.PhotoStage)
	for range 4 {
		var d amqp.Delivery
		select {
		case d = <-deliveries:
		case <-time.After(eventually.Patience):
			t.Fatalf("told of %v alone", told)
		}
		p, err := event.DecodePhotoProgress(d.Body)
		s.must(err)
		told[p.PhotoID] = append(told[p.PhotoID], p.Stage)
		// The reporters of these tests are called as their reports are.
		if to, err := keys.Open(p.PhotoID, p.To); err != nil || to != p.ReportID.String() {
			t.Errorf("told %q, want %s (error %v)", to, p.ReportID, err)
		}
	}
	for photo, stages := range told {
		if !slices.Equal(stages, []event.PhotoStage{event.PhotoChecking, event.PhotoResizing}) {
			t.Errorf("told of photo %s: %q", photo, stages)
		}
	}
	if len(told) != 2 || len(deliveries) > 0 {
		t.Errorf("told of %d photos, and %d times more; want 2, once each", len(told), len(deliveries))
	}
}

// A worker that is stopped finishes its photos in hand.
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
	eventually.True(s.t, "every photo is ready", func() bool { return s.count(`select count(*) from photos where state <> 'ready'`) == 0 })
}

// In a city without photos the worker is healthy, also without a database and a
// broker, logs that it is idle, and ends when it is stopped.
func TestCityWithoutPhotos(t *testing.T) {
	t.Parallel()
	const nowhere = "127.0.0.1:1"
	w := processtest.Start(t, processtest.Config{Address: "OPERATIONS_ADDR", Env: []string{
		"DATABASE_URL=postgres://u@" + nowhere + "/none", "RABBITMQ_URL=amqp://" + nowhere, "RECIPIENT_KEY=" + event.NewKey("k1"), "PHOTO_STORE=",
	}})
	if !strings.Contains(w.Log(), "PHOTO_STORE is empty") {
		t.Errorf("the log does not say why nothing happens:\n%s", w.Log())
	}
	if code := w.Stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// Old files without a photo are deleted, and others stay.
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
	eventually.True(s.t, "the old ones are gone", func() bool {
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
	dir       string   // of the storage, where it is a folder
	url       string   // of the storage
	env       []string // of the worker, besides what it needs
	store     *postgres.Photos
	conn      *amqp.Connection
	publisher *rabbit.Publisher
	photos    int
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t, pool: pgtest.Report(t), rabbit: rabbittest.Vhost(t), key: event.NewKey("k1"), dir: filepath.Join(t.TempDir(), "photos")}
	s.url = "file://" + s.dir
	keys, err := event.ParseKeyring(s.key)
	if err != nil {
		t.Fatal(err)
	}
	s.store = postgres.NewPhotos(postgres.NewDB(s.pool, keys, func(shards.Set) {}, postgres.Rules{}))
	return s
}

// upload adds a photo to a report of its own, and lets the worker check it.
func (s *system) upload(file []byte) {
	s.t.Helper()
	s.publish(s.add(file))
}

// add adds a photo to a report of its own, as report-service does, and returns
// the message that it leaves for the worker.
func (s *system) add(file []byte) amqp.Publishing {
	s.t.Helper()
	ctx := s.t.Context()
	reportID := uuid.New()
	_, err := s.pool.Exec(ctx, `
		with r as (
			insert into reports (id, title, description, category_id, privacy_level, status, version, created_at, updated_at)
			values ($1, 'Dark lamp', '', 2, 'anonymous', 'pending', 1, now(), now())
		)
		insert into reporters (report_id, reporter_id) values ($1, $2)`, reportID, reportID.String())
	s.must(err)
	files, err := blob.Open(blob.Config{URL: s.url, AccessKey: "key", SecretKey: "secret"})
	s.must(err)
	u := report.Upload{ID: uuid.New(), ReportID: reportID, Bytes: int64(len(file)), Hash: sha256.Sum256(file), Key: picture.QuarantineKey()}
	s.must(files.Put(ctx, u.Key, bytes.NewReader(file), u.Bytes))
	_, _, err = s.store.Add(ctx, u, report.User{ID: reportID.String()})
	s.must(err)
	s.photos++
	var id uuid.UUID
	m := amqp.Publishing{Type: string(event.PhotoUploadedKey), ContentType: "application/json", DeliveryMode: amqp.Persistent}
	s.must(s.pool.QueryRow(ctx, `select id, convert_to(payload::text, 'UTF8') from outbox_messages where report_id = $1`, reportID).Scan(&id, &m.Body))
	m.MessageId = id.String()
	return m
}

func (s *system) publish(m amqp.Publishing) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), eventually.Patience)
	defer cancel()
	s.must(s.publisher.PublishWait(ctx, event.Topology{}.Exchange(), string(event.PhotoUploadedKey), m))
}

func (s *system) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// connect opens the connection that publishes, once the queue is there.
func (s *system) connect() {
	s.t.Helper()
	conn, err := rabbit.Dial(context.WithoutCancel(s.t.Context()), rabbit.Config{URL: s.rabbit, Name: "test"})
	s.must(err)
	s.conn = conn
	s.t.Cleanup(func() { _ = conn.Close() }) // the broker may be gone
	eventually.True(s.t, "the queue is there", func() bool {
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

// start runs a worker and waits until it is ready.
func (s *system) start() *processtest.Process {
	s.t.Helper()
	return processtest.Start(s.t, processtest.Config{Address: "OPERATIONS_ADDR", Env: append(slices.Clone(s.env),
		"DATABASE_URL="+s.pool.Config().ConnString(), "RABBITMQ_URL="+s.rabbit, "RECIPIENT_KEY="+s.key,
		"PHOTO_STORE="+s.url, "PHOTO_S3_ACCESS_KEY=key", "PHOTO_S3_SECRET_KEY=secret", "LOG_LEVEL=warn",
	)})
}
