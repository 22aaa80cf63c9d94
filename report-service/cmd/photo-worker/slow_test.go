package main

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/testlog"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/config"
	"github.com/cityconnect/cityconnect/report-service/internal/photoworker"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// blackPNG returns a PNG of 48 megapixels of one colour: 140 kB, which take a second of
// a processor and more.
func blackPNG(t *testing.T) []byte {
	t.Helper()
	const width, height = 8000, 6000
	var pixels bytes.Buffer
	z, row := zlib.NewWriter(&pixels), make([]byte, 1+3*width)
	for range height {
		if _, err := z.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	file := []byte("\x89PNG\r\n\x1a\n")
	for _, chunk := range []struct {
		name string
		data []byte
	}{{"IHDR", append(header, 8, 2, 0, 0, 0)}, {"IDAT", pixels.Bytes()}, {"IEND", nil}} {
		file = binary.BigEndian.AppendUint32(file, uint32(len(chunk.data)))
		named := append([]byte(chunk.name), chunk.data...)
		file = binary.BigEndian.AppendUint32(append(file, named...), crc32.ChecksumIEEE(named))
	}
	return file
}

// Pictures that take longer than they may end as failed after three attempts each. Others
// are made beside them, and none of them becomes a dead letter.
func TestSlowPicturesEnd(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	keys, err := event.ParseKeyring(s.key)
	s.must(err)
	files, err := blob.Open(blob.Config{URL: s.url})
	s.must(err)
	cfg := config.Worker{Timeout: time.Second, Memory: 512 << 20}
	metrics, log := prometheus.NewRegistry(), testlog.New(t)
	worker := photoworker.New(photoworker.Dependencies{
		Store: postgres.NewPhotoChecks(postgres.NewDB(s.pool, keys, func(shards.Set) {}, postgres.Rules{})), Files: files,
		// A hundredth of a processor: no machine makes a large one in time.
		Maker: picture.NewMaker(50_000_000, cfg.Budget(), 0.01), Lanes: cfg.Lanes(),
		Tell: func(string, event.PhotoProgress) {}, Log: log, Metrics: metrics,
	})
	groups, err := group.New(cfg.Consumer(), group.Dependencies{Database: s.pool, RabbitURL: s.rabbit, Log: log, Metrics: metrics}, worker.Group())
	s.must(err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- groups.Run(ctx) }()
	s.connect()

	const large, small = 2, 5
	slow, fast := blackPNG(t), newPicture(t, 160, 120)
	for range large {
		s.upload(slow)
	}
	for range small {
		s.upload(fast)
	}
	eventually.True(t, "every photo is judged", func() bool { return s.count(`select count(*) from photos where state = 'checking'`) == 0 })
	if n := s.count(`select count(*) from photos where reason = 'failed'`); n != large {
		t.Errorf("%d photos failed, want the %d large ones", n, large)
	}
	if n := s.count(`select count(*) from photos where state = 'ready'`); n != small {
		t.Errorf("%d photos are ready, want the %d small ones", n, small)
	}
	if n := s.count(`select count(*) from dead_letters`); n != 0 {
		t.Errorf("%d dead letters, want none", n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Large pictures of one account end, and hold up nobody's photos but large ones. What
// others wait for is logged beside what they waited for before: LARGE_PICTURES=20 is what
// an account may send at once, and takes an hour with the race detector.
func TestLargePicturesHoldUpNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	s := newSystem(t)
	s.env = append(s.env, "PHOTO_PROCESSOR_SHARE=1") // all that there is to take from others
	w := s.start()
	s.connect()
	file := newPicture(t, 1600, 1200)
	waited := func() time.Duration {
		began, ready := time.Now(), s.count(`select count(*) from photos where state = 'ready' and width < 2048`)
		s.upload(file)
		eventually.True(t, "a small photo is ready", func() bool {
			return s.count(`select count(*) from photos where state = 'ready' and width < 2048`) > ready
		})
		return time.Since(began).Round(time.Millisecond)
	}
	var calm, busy []time.Duration
	for range 10 {
		calm = append(calm, waited())
	}
	large := 2
	if n := os.Getenv("LARGE_PICTURES"); n != "" {
		var err error
		large, err = strconv.Atoi(n)
		s.must(err)
	}
	began, slow := time.Now(), blackPNG(t)
	for range large {
		s.upload(slow)
	}
	for s.count(`select count(*) from photos where state = 'checking'`) > 0 {
		busy = append(busy, waited())
	}
	slices.Sort(calm)
	slices.Sort(busy)
	t.Logf("large: %d ready, %d failed in %s; small: median %s of %d before, %s of %d beside them, at most %s",
		s.count(`select count(*) from photos where state = 'ready' and width = 2048`), s.count(`select count(*) from photos where reason = 'failed'`), time.Since(began).Round(time.Second),
		calm[len(calm)/2], len(calm), busy[len(busy)/2], len(busy), busy[len(busy)-1])
	if n := s.count(`select count(*) from dead_letters`); n != 0 {
		t.Errorf("%d dead letters, want none", n)
	}
	if strings.Contains(w.Log(), "circuit opened") {
		t.Error("the circuit was opened")
	}
}
