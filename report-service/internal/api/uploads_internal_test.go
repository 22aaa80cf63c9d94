package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// However many photos come at once, a replica takes so many bytes a second of
// them; each gets on, and one photo of a telephone waits for nothing.
func TestUploadsArePaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		uploads, bytes int
		want           time.Duration
	}{
		{"one of a telephone", 1, uploadBurst, 0},
		{"sixteen at once", 16, 2 * uploadBurst, time.Second * (16*2*uploadBurst - uploadBurst) / uploadRate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limit, began := rate.NewLimiter(uploadRate, uploadBurst), time.Now()
				photo := make([]byte, tt.bytes)
				var first time.Time
				var once sync.Once
				var uploading sync.WaitGroup
				for range tt.uploads {
					uploading.Go(func() {
						body := &uploadBody{ctx: t.Context(), r: bytes.NewReader(photo), limit: limit, hash: sha256.New()}
						if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, body, make([]byte, uploadRead)); err != nil || n != int64(tt.bytes) {
							t.Errorf("read %d bytes, error %v; want %d", n, err, tt.bytes)
						}
						once.Do(func() { first = time.Now() })
					})
				}
				uploading.Wait()
				took := time.Since(began)
				// The limiter counts in floating point, and may be a nanosecond early.
				if took < tt.want-time.Millisecond || took > tt.want+time.Second {
					t.Errorf("took %v, want %v", took, tt.want)
				}
				// They share what there is: one that had the burst alone is that
				// much ahead of the others, and one read.
				ahead, most := time.Since(first), time.Second*time.Duration(tt.uploads)*(uploadBurst+uploadRead)/uploadRate
				if ahead > most {
					t.Errorf("the first one was done %v before the last, want %v at most", ahead, most)
				}
			})
		})
	}
}

// A client that leaves while its photo waits for others is noticed at once.
func TestPacedUploadEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	limit := rate.NewLimiter(uploadRate, uploadBurst)
	limit.ReserveN(time.Now(), uploadBurst) // others took it all
	cancel()
	body := &uploadBody{ctx: ctx, r: strings.NewReader("picture"), limit: limit, hash: sha256.New()}
	if _, err := io.ReadAll(body); !errors.Is(err, context.Canceled) || body.err == nil {
		t.Errorf("error %v, want that of the request", err)
	}
}
