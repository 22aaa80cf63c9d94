package picture

import (
	"context"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxUnpaced is up to how many pixels a picture is made without a rest: the
	// usual size of a telephone's picture.
	maxUnpaced = 16_000_000
	// slice is how long the work runs between two rests. The system would give
	// it the processor for some milliseconds, while others wait.
	slice = 500 * time.Microsecond
	// maxRest bounds all rests of a picture together, so that the largest one on a
	// slow machine is made in time.
	maxRest = 15 * time.Second
)

// A pace slows down the work on a large picture in favour of other work of the
// machine: each slice is followed by a rest, so that the work takes no more
// than its share of a processor.
//
// It measures the processor time of its thread: on a busy machine the work does
// not rest for the time that others took. A nil pace never rests.
type pace struct {
	share  float64              // of a processor, above 0; 1 is without rests
	hurry  func() bool          // whether others wait for the memory of this work: no rest then
	worked func() time.Duration // so far
	rest   func(time.Duration)
	paid   time.Duration // the work before the last rest
	rested time.Duration
}

// newPace begins work of this goroutine, which must call end.
func newPace(share float64, hurry func() bool) *pace {
	runtime.LockOSThread()
	began := threadTime()
	worked := func() time.Duration { return threadTime() - began }
	return &pace{share: share, hurry: hurry, worked: worked, rest: time.Sleep} //nolint:forbidigo // there is nothing to wait for but the time
}

func (p *pace) end() {
	if p != nil {
		runtime.UnlockOSThread()
	}
}

func threadTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) // every Linux has this clock
	return time.Duration(now.Nano())
}

// step rests if a slice of work was done since the last rest.
func (p *pace) step() {
	if p == nil || p.share == 1 || p.rested >= maxRest {
		return
	}
	work := p.worked() - p.paid
	if work < slice {
		return
	}
	p.paid += work
	if p.hurry() {
		return
	}
	rest := time.Duration(float64(work) * (1/p.share - 1))
	p.rest(rest)
	p.rested += rest
}

// A pacedReader takes a step at each Read, and fails once ctx has ended.
type pacedReader struct {
	io.Reader
	upload []byte // what it reads of
	ctx    context.Context
	pace   *pace
}

func (r pacedReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	r.pace.step()
	return r.Reader.Read(b)
}

// A pacedWriter takes a step at each Write, and fails once ctx has ended.
type pacedWriter struct {
	io.Writer
	ctx  context.Context
	pace *pace
}

func (w pacedWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	w.pace.step()
	return w.Writer.Write(b)
}
