package picture

import (
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxUnpaced is up to how many pixels a picture is made without a rest: what
	// telephones take, unless they are told otherwise.
	maxUnpaced = 16_000_000
	// slice is how long the work goes on between two rests. The system would give
	// it the processor for some milliseconds, in which others wait.
	slice = 500 * time.Microsecond
	// maxRest bounds all rests of a picture together, so that the largest one on a
	// slow machine is made in time.
	maxRest = 15 * time.Second
)

// A pace has the work on a large picture give way to whatever else the machine
// does: each slice is followed by a rest, so that the work has no more than its
// share of a processor.
//
// It counts what the thread has had of a processor: on a busy machine the work
// does not rest for what others took. A nil pace never rests.
type pace struct {
	share  float64              // of a processor, above 0; 1 is without a rest
	hurry  func() bool          // whether others wait for what the work holds: no rest then
	worked func() time.Duration // by now
	rest   func(time.Duration)
	paid   time.Duration // the work that has had its rest
	rested time.Duration
}

// newPace begins a piece of work of this goroutine, which must call end.
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
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) // every system has it
	return time.Duration(now.Nano())
}

// step rests if a slice has passed since the last rest.
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

// A pacedReader makes a step whenever it is read.
type pacedReader struct {
	io.Reader
	pace *pace
}

func (r pacedReader) Read(b []byte) (int, error) {
	r.pace.step()
	return r.Reader.Read(b)
}

// A pacedWriter makes a step whenever it is written to.
type pacedWriter struct {
	io.Writer
	pace *pace
}

func (w pacedWriter) Write(b []byte) (int, error) {
	w.pace.step()
	return w.Writer.Write(b)
}
