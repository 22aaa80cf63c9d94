package picture

import (
	"bytes"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const (
	ms      = time.Millisecond
	hurried = 7 * time.Minute // when others wait
)

// Each slice has a rest, by what was worked and not by the steps, until all rests
// together are long enough; but none while others wait for it.
func TestPace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		share float64
		steps []time.Duration // work done so far
		want  []time.Duration // the rests
	}{
		{0.2, []time.Duration{0, slice - 1}, nil},
		{0.2, []time.Duration{slice, slice + ms/4, 3 * slice}, []time.Duration{4 * slice, 8 * slice}},
		{0.5, []time.Duration{2 * ms, 3 * ms}, []time.Duration{2 * ms, ms}},
		{0.1, []time.Duration{2 * time.Second, 9 * time.Second}, []time.Duration{18 * time.Second}},
		{1, []time.Duration{time.Hour}, nil},
		{0.5, []time.Duration{2 * ms, hurried, hurried + ms}, []time.Duration{2 * ms, ms}},
	} {
		var rests []time.Duration
		var now time.Duration
		p := &pace{
			share: tt.share, hurry: func() bool { return now == hurried }, worked: func() time.Duration { return now },
			rest: func(d time.Duration) { rests = append(rests, d.Round(time.Microsecond)) },
		}
		for _, now = range tt.steps {
			p.step()
		}
		if !slices.Equal(rests, tt.want) {
			t.Errorf("share %v, worked %v: rests %v, want %v", tt.share, tt.steps, rests, tt.want)
		}
	}
}

// While a picture is read and while its files are written, the work rests.
func TestMakeRests(t *testing.T) {
	t.Parallel()
	noise := image.NewRGBA(image.Rect(0, 0, 800, 600))
	for i := range noise.Pix {
		noise.Pix[i] = byte(rand.Uint32())
	}
	var upload bytes.Buffer
	if err := jpeg.Encode(&upload, noise, nil); err != nil {
		t.Fatal(err)
	}
	var worked, rested time.Duration
	maker := NewMaker(1_000_000, 128<<20, 0.2)
	maker.maxUnpaced = 800*600 - 1
	maker.newPace = func() *pace {
		p := newPace(0.2, func() bool { return maker.waiting.Load() > 0 })
		p.worked = func() time.Duration { worked += slice; return worked }
		p.rest = func(d time.Duration) { rested += d }
		return p
	}
	made, err := maker.Make(t.Context(), upload.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	size := upload.Len()
	for _, file := range made.Files {
		size += len(file)
	}
	maker.maxUnpaced++
	before := rested
	if _, err := maker.Make(t.Context(), upload.Bytes()); err != nil || rested != before {
		t.Errorf("of a smaller picture: rests of %v, error %v; want neither", rested-before, err)
	}
	// Both are read and written by 4 KiB.
	if want := time.Duration(size/4096) * 4 * slice; rested < want*9/10 {
		t.Errorf("%d bytes were read and written with rests of %v, want about %v", size, rested, want)
	}
}

// A picture that waits for its memory is counted as long as it waits, so that the
// one that has it does not rest.
func TestWaitingIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const memory = 128 << 20
		var upload bytes.Buffer
		if err := jpeg.Encode(&upload, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
			t.Fatal(err)
		}
		maker := NewMaker(1_000_000, memory, 0.2)
		if !maker.memory.TryAcquire(memory) { // another has it all
			t.Fatal("the memory is not free")
		}
		before := maker.newPace()
		defer before.end()
		if before.hurry() {
			t.Error("nobody waits, and the pace hurries")
		}
		go func() {
			if _, err := maker.Make(t.Context(), upload.Bytes()); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if !before.hurry() {
			t.Error("one waits, and the pace does not hurry")
		}
		maker.memory.Release(memory)
		synctest.Wait()
		if before.hurry() {
			t.Error("the one that waited is done, and the pace hurries")
		}
	})
}

// The time of a thread is that of its work, and not of its rests.
func TestThreadTime(t *testing.T) {
	t.Parallel()
	p := newPace(1, nil)
	defer p.end()
	sum := byte(0)
	for began := p.worked(); p.worked()-began < ms; {
		sum += byte(rand.Uint32())
	}
	if worked := p.worked(); worked < ms {
		t.Errorf("worked %v, want 1 ms or more; sum %d", worked, sum)
	}
}

// Large pictures wait for one another where small ones do not wait behind them.
func TestSmallPicturesDoNotWaitBehindLargeOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const memory = 512 << 20
		maker := NewMaker(50_000_000, memory, 0.2)
		first, err := maker.acquire(t.Context(), 300<<20, true)
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan func(), 1)
		go func() {
			release, err := maker.acquire(t.Context(), 300<<20, true)
			if err != nil {
				t.Error(err)
			}
			second <- release
		}()
		synctest.Wait()
		for range 3 {
			small, err := maker.acquire(t.Context(), 100<<20, false)
			if err != nil {
				t.Fatal(err)
			}
			small()
		}
		if len(second) > 0 {
			t.Error("two large ones have more memory than there is")
		}
		first()
		(<-second)()
		all, err := maker.acquire(t.Context(), memory, true) // one that needs it all
		if err != nil {
			t.Fatal(err)
		}
		all()
	})
}
