package photoworker_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/photoworker"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// uploads are photos that wait for a worker, by the files that were uploaded, and
// their verdicts.
type uploads struct {
	photoworker.Store

	mu       sync.Mutex
	files    map[string][]byte
	verdicts map[uuid.UUID]report.Judgement
	fetched  int
}

func (u *uploads) UploadToCheck(_ context.Context, photo uuid.UUID) (postgres.Unchecked, error) {
	return postgres.Unchecked{Key: photo.String(), Checking: true}, nil
}

func (u *uploads) Judge(_ context.Context, _ string, m consumer.Message, v report.Judgement) (seen, kept bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.verdicts[m.Event.(*event.PhotoUploaded).PhotoID] = v
	return false, true, nil
}

func (u *uploads) Cleaned(context.Context, postgres.Leftover) error { return nil }

// uploadedFiles are the files of uploads.
type uploadedFiles struct {
	blob.Store
	*uploads
}

func (u uploadedFiles) Get(_ context.Context, key string, _ int64) ([]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fetched++
	return u.files[key], nil
}

func (u uploadedFiles) Delete(context.Context, string) error { return nil }

// put uploads a file and returns its photo.
func (u *uploads) put(file []byte) uuid.UUID {
	id := uuid.New()
	u.files[id.String()] = file
	return id
}

// A slowScanner takes until the test ends it for files that are nothing but a header.
type slowScanner struct{ begun, end chan struct{} }

func (s slowScanner) Infected(ctx context.Context, file []byte) (bool, error) {
	if len(file) > 100 {
		return true, nil
	}
	s.begun <- struct{}{}
	select {
	case <-s.end:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// header is the beginning of a PNG of so many pixels.
func header(width, height uint32) []byte {
	chunk := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
	chunk = append(binary.BigEndian.AppendUint32(chunk, height), 8, 2, 0, 0, 0)
	file := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), chunk...)
	return binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(chunk))
}

// With as many large pictures in hand as may be, small ones go on, and further large
// ones wait without holding a worker.
func TestLargePicturesDoNotHoldUpSmallOnes(t *testing.T) {
	t.Parallel()
	store := &uploads{files: make(map[string][]byte), verdicts: make(map[uuid.UUID]report.Judgement)}
	scanner := slowScanner{make(chan struct{}), make(chan struct{})}
	worker := photoworker.New(photoworker.Dependencies{
		Store: store, Files: uploadedFiles{uploads: store}, Maker: picture.NewMaker(50_000_000, 512<<20, 1), Scanner: scanner,
		Lanes: photoworker.Lanes{Small: 1, Large: 2}, Tell: func(string, event.PhotoProgress) {},
		Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
	})
	apply := func(photo uuid.UUID) error {
		_, err := worker.Apply(t.Context(), "q", []consumer.Message{{Event: &event.PhotoUploaded{PhotoID: photo}}})
		return err
	}
	var large [3]uuid.UUID
	for i := range large {
		large[i] = store.put(header(7000, 7000))
	}
	var small bytes.Buffer
	if err := jpeg.Encode(&small, image.NewRGBA(image.Rect(0, 0, 640, 480)), nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for _, photo := range large[:2] {
		go func() { done <- apply(photo) }()
		<-scanner.begun
	}
	for range 10 {
		id := store.put(small.Bytes())
		if err := apply(id); err != nil || store.verdicts[id].Reason != report.PhotoInfected {
			t.Errorf("a small picture: verdict %+v, error %v; want that it was looked at", store.verdicts[id], err)
		}
	}
	before := store.fetched
	for range 3 {
		if err := apply(large[2]); failure.Classify(err) != failure.Postponed {
			t.Errorf("a third large one: %v, want that its turn has not come", err)
		}
	}
	if store.fetched != before+1 {
		t.Errorf("it was fetched %d times to find out, want once", store.fetched-before)
	}
	close(scanner.end)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	go func() { <-scanner.begun }()
	if err := apply(large[2]); err != nil || store.verdicts[large[2]].Reason != report.PhotoInfected {
		t.Errorf("once there is room: verdict %+v, error %v", store.verdicts[large[2]], err)
	}
}

// Only the header says whether a picture is large.
func TestIsLarge(t *testing.T) {
	t.Parallel()
	var small bytes.Buffer
	if err := png.Encode(&small, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	maker := picture.NewMaker(50_000_000, 512<<20, 1)
	for name, tt := range map[string]struct {
		file []byte
		want bool
	}{
		"16 megapixels": {header(4000, 4000), false}, "and a row more": {header(4000, 4001), true}, "two thousand million": {header(1<<31-1, 1), true},
		"small": {small.Bytes(), false}, "broken": {header(7000, 7000)[:20], false}, "no picture": {[]byte("PK"), false}, "nothing": {nil, false},
	} {
		if got := maker.IsLarge(tt.file); got != tt.want {
			t.Errorf("%s: large %t, want %t", name, got, tt.want)
		}
	}
}
