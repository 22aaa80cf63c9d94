// Package picture makes the served pictures of an upload.
//
// It promises that they contain nothing of the upload but the image itself:
// this package redraws and encodes each, without the tags, thumbnails and
// comments that name places, times and devices. It judges by the bytes and
// never by the sender's content type, checks the size before it decodes, and
// keeps within a budget of memory, however many pictures it makes at a time.
// Work on large pictures yields to other work of the machine.
package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"sync/atomic"

	"golang.org/x/image/webp"
	"golang.org/x/sync/semaphore"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Sizes are the longest sides of the pictures that are made, the largest first.
// A picture is never enlarged.
var Sizes = [...]int{2048, 1024, 320}

const (
	// maxSide is the longest side that is decoded, in pixels: the longest that a JPEG
	// can have. Panoramas are long, and cost what their pixels cost.
	maxSide = 65_535
	// overhead is the memory of a picture that does not depend on its pixels:
	// two drawings of the largest size, and the encoder's output.
	overhead = 40 << 20
	// spared is the memory that large pictures leave to a small one, unless one of them
	// needs it all: that of a telephone's picture.
	spared = 100 << 20
)

// ErrNoMemory says that other pictures had the memory until the context ended.
var ErrNoMemory = errors.New("other pictures have the memory")

// A Refusal says why no pictures can be made of an upload: it is an answer for
// the uploader, not a failure of the program.
type Refusal struct {
	Reason report.PhotoReason
	Err    error // for the log; it does not quote the upload
}

// Error returns the reason and the cause.
func (r *Refusal) Error() string { return fmt.Sprintf("refused as %s: %v", r.Reason, r.Err) }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(reason report.PhotoReason, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Errorf(format, args...)}
}

// reasonOf returns why a file is refused that cannot be decoded: there are JPEG files which
// are whole, and which package image/jpeg does not read.
func reasonOf(err error) report.PhotoReason {
	if _, ok := errors.AsType[jpeg.UnsupportedError](err); ok {
		return report.PhotoUnsupported
	}
	return report.PhotoDamaged
}

// A Maker makes pictures. It may be used concurrently: callers wait while their
// pictures would not fit into the memory together.
type Maker struct {
	maxPixels int64
	budget    int64
	memory    *semaphore.Weighted // in bytes
	large     *semaphore.Weighted // what large ones may have of it, in bytes
	mostLarge int64               // of large
	waiting   atomic.Int64        // how many wait for memory

	maxUnpaced int64
	newPace    func() *pace
}

// NewMaker returns a Maker of pictures of up to maxPixels, which uses at most
// memory bytes at a time. A picture of more than 16 megapixels gets no more
// than share of a processor, above 0 and up to 1, unless another waits for its
// memory.
func NewMaker(maxPixels, memory int64, share float64) *Maker {
	m := &Maker{maxPixels: maxPixels, budget: memory, memory: semaphore.NewWeighted(memory), maxUnpaced: maxUnpaced}
	m.mostLarge = max(1, memory-spared)
	m.large = semaphore.NewWeighted(m.mostLarge)
	m.newPace = func() *pace { return newPace(share, func() bool { return m.waiting.Load() > 0 }) }
	return m
}

// IsLarge reports whether the header of upload promises so many pixels that the work on
// it yields to other work, and so takes long. What cannot be read is not large.
func (m *Maker) IsLarge(upload []byte) bool {
	defer func() { _ = recover() }() // a decoder's panic is Make's to refuse
	format, err := sniff(upload)
	if err != nil {
		return false
	}
	config, err := format.config(format.open(upload))
	return err == nil && int64(config.Width)*int64(config.Height) > m.maxUnpaced
}

// Pictures are the pictures of an upload: JPEG files, by the sizes in Sizes.
type Pictures struct {
	Width, Height int // of the largest
	Files         map[int][]byte
}

// Make returns the pictures of upload, or a *Refusal. Once ctx has ended, it stops
// waiting for memory and working, within some rows of the picture.
func (m *Maker) Make(ctx context.Context, upload []byte) (made Pictures, err error) {
	// A decoder that panics affects this file only.
	defer func() {
		if value := recover(); value != nil {
			err = refuse(report.PhotoDamaged, "a panic of type %T", value)
		}
	}()
	format, err := sniff(upload)
	if err != nil {
		return Pictures{}, err
	}
	config, err := format.config(format.open(upload))
	if err != nil {
		return Pictures{}, refuse(reasonOf(err), "read the header: %w", err)
	}
	pixels := int64(config.Width) * int64(config.Height)
	switch {
	case config.Width <= 0 || config.Height <= 0:
		return Pictures{}, refuse(report.PhotoDamaged, "it has no pixels")
	case scans(upload) > maxScans:
		return Pictures{}, refuse(report.PhotoDamaged, "it goes over its pixels more than %d times", maxScans)
	case pixels > m.maxPixels || config.Width > maxSide || config.Height > maxSide:
		return Pictures{}, refuse(report.PhotoTooLarge, "%d × %d pixels, must be at most %d, and %d a side", config.Width, config.Height, m.maxPixels, maxSide)
	}
	need := int64(len(upload)) + format.memory(upload, config) + pixels + overhead
	if need > m.budget {
		return Pictures{}, refuse(report.PhotoTooLarge, "it takes %d bytes of memory, must be at most %d", need, m.budget)
	}
	release, err := m.acquire(ctx, need, pixels > m.maxUnpaced)
	if err != nil {
		return Pictures{}, fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	defer release()

	var p *pace
	if pixels > m.maxUnpaced {
		p = m.newPace()
	}
	defer p.end()
	decoded, err := format.decode(pacedReader{format.open(upload), upload, ctx, p})
	if ctx.Err() != nil {
		return Pictures{}, fmt.Errorf("decode picture: %w", ctx.Err())
	}
	if err != nil {
		return Pictures{}, refuse(reasonOf(err), "decode: %w", err)
	}
	// The decoder may have used another header than the one checked above.
	if b := decoded.Bounds(); int64(b.Dx())*int64(b.Dy()) > pixels {
		return Pictures{}, refuse(report.PhotoDamaged, "it has more pixels than its header says")
	}
	turn := orientation(upload, format)
	width, height := fit(decoded.Bounds().Dx(), decoded.Bounds().Dy(), Sizes[0])
	drawn, err := shrink(ctx, decoded, width, height, p)
	if err != nil {
		return Pictures{}, fmt.Errorf("shrink picture: %w", err)
	}
	return encode(ctx, oriented(drawn, turn), p)
}

// acquire waits for the memory of a picture. Large ones wait for one another elsewhere
// than where small ones wait, which would have to wait behind them otherwise.
func (m *Maker) acquire(ctx context.Context, need int64, large bool) (release func(), err error) {
	m.waiting.Add(1)
	defer m.waiting.Add(-1)
	leave := func() {}
	if large { // a small one that asked for nothing would wait for its turn, too
		ofLarge := min(need, m.mostLarge)
		if err := m.large.Acquire(ctx, ofLarge); err != nil {
			return nil, err
		}
		leave = func() { m.large.Release(ofLarge) }
	}
	if err := m.memory.Acquire(ctx, need); err != nil {
		leave()
		return nil, err
	}
	return func() { m.memory.Release(need); leave() }, nil
}

// Redact returns the pictures of an existing picture, with black in place of
// the rectangles.
func Redact(ctx context.Context, made []byte, rects []report.Rect) (Pictures, error) {
	decoded, err := jpeg.Decode(bytes.NewReader(made))
	if err != nil {
		return Pictures{}, fmt.Errorf("decode picture: %w", err)
	}
	b := decoded.Bounds()
	drawn, err := shrink(ctx, decoded, b.Dx(), b.Dy(), nil)
	if err != nil {
		return Pictures{}, fmt.Errorf("draw picture: %w", err)
	}
	for _, r := range rects {
		black(drawn, r)
	}
	return encode(ctx, drawn, nil)
}

// encode makes all files from the largest picture. A nil pace does not slow it
// down.
func encode(ctx context.Context, largest *image.RGBA, at *pace) (Pictures, error) {
	p := Pictures{Width: largest.Rect.Dx(), Height: largest.Rect.Dy(), Files: make(map[int][]byte, len(Sizes))}
	drawn, err := largest, error(nil)
	for _, size := range Sizes {
		if width, height := fit(p.Width, p.Height, size); width != drawn.Rect.Dx() || height != drawn.Rect.Dy() {
			if drawn, err = shrink(ctx, drawn, width, height, at); err != nil {
				return Pictures{}, fmt.Errorf("shrink picture: %w", err)
			}
		}
		var file bytes.Buffer
		// Above 82, larger files do not look better on a screen.
		if err := jpeg.Encode(pacedWriter{&file, ctx, at}, drawn, &jpeg.Options{Quality: 82}); err != nil {
			return Pictures{}, fmt.Errorf("encode picture: %w", err)
		}
		p.Files[size] = file.Bytes()
	}
	return p, nil
}

// sniff detects the format of upload by its first bytes.
func sniff(upload []byte) (format, error) {
	contentType := http.DetectContentType(upload)
	f, ok := formats[contentType]
	if !ok {
		return format{}, refuse(report.PhotoUnsupported, "it begins as %s does", contentType)
	}
	return f, nil
}

// Formats are the supported formats, by their content types. Only the first
// picture of an animation is decoded.
var formats = map[string]format{
	"image/jpeg": {mendJPEG, jpeg.DecodeConfig, jpeg.Decode, jpegMemory, exifJPEG},
	"image/png":  {mendPNG, png.DecodeConfig, decodePNG, pngMemory, exifPNG},
	"image/webp": {firstPicture, webp.DecodeConfig, webp.Decode, webpMemory, exifWebP},
	"image/gif":  {whole, gif.DecodeConfig, gif.Decode, gifMemory, exifNone},
}

func whole(upload []byte) io.Reader { return bytes.NewReader(upload) }

// pngInterlaced is where the header of a PNG says whether it is interlaced (RFC 2083,
// section 4.1.1).
const pngInterlaced = 28

// pngMemory returns the maximum memory of package image/png: the picture, and
// half of it again if it is interlaced. Transparency turns one or three
// channels into four.
func pngMemory(upload []byte, c image.Config) int64 {
	perPixel := int64(4)
	switch c.ColorModel {
	case color.Gray16Model, color.RGBA64Model, color.NRGBA64Model:
		perPixel = 8
	}
	memory := int64(c.Width) * int64(c.Height) * perPixel
	if len(upload) <= pngInterlaced || upload[pngInterlaced] != 0 {
		memory += memory / 2
	}
	return memory
}

// webpMemory returns the maximum memory of package webp: a lossless picture is
// decoded into one buffer and transformed into another, and a lossy one has its
// transparency in a lossless one.
func webpMemory(_ []byte, c image.Config) int64 { return int64(c.Width) * int64(c.Height) * 11 }

// gifMemory returns the memory of the indexes of a picture, twice if it is
// interlaced.
func gifMemory(_ []byte, c image.Config) int64 { return int64(c.Width) * int64(c.Height) * 2 }
