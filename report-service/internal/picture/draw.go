package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"strconv"

	"github.com/bep/imagemeta"
	"golang.org/x/image/draw"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A format is how a kind of file is decoded.
type format struct {
	// open reads the part of an upload that is decoded.
	open   func(upload []byte) io.Reader
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	// memory returns the maximum memory of decode, in bytes.
	memory func(upload []byte, c image.Config) int64
	// exif returns the blocks of EXIF data, the first of which with an orientation counts.
	exif func(upload []byte) [][]byte
}

// upright is the orientation of a picture that needs no rotation.
const upright = 1

// maxTags is how many tags are searched for the orientation: as many as there can be
// in the directory that has it. Cameras write some hundred.
const maxTags = 1 << 16

// orientation reads how the camera was held, 1 to 8 (EXIF 2.32, tag 0x0112). It
// reads no other tag. An unreadable orientation counts as upright.
func orientation(upload []byte, f format) int {
	found := 0
	isOrientation := func(tag imagemeta.TagInfo) bool {
		return tag.Source == imagemeta.EXIF && tag.Tag == "Orientation" && tag.Namespace == "IFD0"
	}
	for _, block := range f.exif(upload) {
		_, _ = imagemeta.Decode(imagemeta.Options{ // what cannot be read has no orientation
			R: bytes.NewReader(block), ImageFormat: imagemeta.TIFF, Sources: imagemeta.EXIF, LimitNumTags: maxTags,
			ShouldHandleTag: isOrientation,
			HandleTag: func(tag imagemeta.TagInfo) error {
				// It is a SHORT; some programs write a LONG or a BYTE.
				if value, err := strconv.Atoi(fmt.Sprint(tag.Value)); err == nil && value >= 1 && value <= 8 {
					found = value
				}
				return imagemeta.ErrStopWalking
			},
		})
		if found > 0 {
			return found
		}
	}
	return upright
}

// maxBlocks is how many blocks are read. One is usual, and two happen.
const maxBlocks = 10

// tiffOf returns a block of EXIF data without the name that it has in a JPEG file, and
// that some programs write in others, too.
func tiffOf(block []byte) []byte {
	const name = "Exif\x00"
	if bytes.HasPrefix(block, []byte(name)) && len(block) > len(name) {
		return block[len(name)+1:]
	}
	return block
}

func exifNone([]byte) [][]byte { return nil }

// exifJPEG returns the blocks before the picture.
func exifJPEG(upload []byte) (blocks [][]byte) {
	for s := range segments(upload) {
		if s.marker == markerSOS || len(blocks) == maxBlocks {
			break
		}
		if s.marker == markerApp1 && bytes.HasPrefix(s.content, []byte("Exif")) {
			blocks = append(blocks, tiffOf(s.content))
		}
	}
	return blocks
}

func exifPNG(upload []byte) (blocks [][]byte) {
	const head = 8 // the signature; and the size and the name of each chunk
	for at := int64(head); at+head <= int64(len(upload)) && len(blocks) < maxBlocks; {
		end := at + head + int64(binary.BigEndian.Uint32(upload[at:]))
		if end > int64(len(upload)) {
			break
		}
		if string(upload[at+4:at+head]) == "eXIf" {
			blocks = append(blocks, tiffOf(upload[at+head:end]))
		}
		at = end + 4 // behind the checksum
	}
	return blocks
}

func exifWebP(upload []byte) (blocks [][]byte) {
	for at := int64(webpHead); at+chunkHead <= int64(len(upload)) && len(blocks) < maxBlocks; {
		size := int64(binary.LittleEndian.Uint32(upload[at+4:]))
		end := at + chunkHead + size
		if end > int64(len(upload)) {
			break
		}
		if string(upload[at:at+4]) == "EXIF" {
			blocks = append(blocks, tiffOf(upload[at+chunkHead:end]))
		}
		at = end + size&1 // padded to an even size
	}
	return blocks
}

// fit returns the size of a picture whose longest side is at most size.
func fit(width, height, size int) (int, int) {
	longest := max(width, height)
	if longest <= size {
		return width, height
	}
	scale := func(n int) int { return max(1, int(math.Round(float64(n)*float64(size)/float64(longest)))) }
	return scale(width), scale(height)
}

// shrink draws src on white, at its own size or a smaller one.
//
// It halves as long as it can, each pixel being the mean of four, and then
// takes one step of less than two. The better interpolations of package draw
// keep 32 bytes for each pixel of a column of the source: 200 MB for a
// telephone's picture, against a quarter of the source here.
//
// It takes a step of at, and fails if ctx has ended, every few rows.
func shrink(ctx context.Context, src image.Image, width, height int, at *pace) (*image.RGBA, error) {
	for {
		from := src.Bounds()
		to := image.Rect(0, 0, width, height)
		if from.Dx() >= 2*width && from.Dy() >= 2*height {
			to = image.Rect(0, 0, from.Dx()/2, from.Dy()/2)
			if half := halve(src); half != nil {
				src = half
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				continue
			}
			from.Max = from.Min.Add(to.Max.Mul(2)) // without the last row or column of an odd number
		}
		drawn := image.NewRGBA(to)
		draw.Draw(drawn, to, image.NewUniform(color.White), image.Point{}, draw.Src)
		rows := to.Dy()
		if from.Dy() == 2*to.Dy() { // each row is of two rows alone, so that bands fit together
			rows = band
		}
		for y := 0; y < to.Dy(); y += rows {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			at.step()
			part := image.Rect(0, y, to.Dx(), min(y+rows, to.Dy()))
			of, seen := from, src
			if rows < to.Dy() {
				of = image.Rect(from.Min.X, from.Min.Y+2*part.Min.Y, from.Max.X, from.Min.Y+2*part.Max.Y)
				seen = crop(src, of) // Scale looks first whether all that it is given is opaque
			}
			draw.ApproxBiLinear.Scale(drawn, part, seen, of, draw.Over, nil)
		}
		if to.Dx() == width && to.Dy() == height {
			return drawn, nil
		}
		src = drawn
	}
}

// band is how many rows are drawn between two looks at the time.
const band = 32

// crop returns the part of a picture, or all of it where its type has no parts.
func crop(src image.Image, part image.Rectangle) image.Image {
	if s, ok := src.(interface {
		SubImage(part image.Rectangle) image.Image
	}); ok {
		return s.SubImage(part)
	}
	return src
}

// halve returns half of a picture in a camera's format, and nil for others. It
// halves brightness and colours as they are stored, which is much faster than
// pixel by pixel; most cameras store colours at half the size already, and
// these are kept.
func halve(src image.Image) image.Image {
	m, ok := src.(*image.YCbCr)
	if !ok || m.Rect.Min != (image.Point{}) {
		return nil
	}
	var across, down int // how many colour samples become one
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio420:
		across, down = 1, 1
	case image.YCbCrSubsampleRatio422:
		across, down = 1, 2
	case image.YCbCrSubsampleRatio440:
		across, down = 2, 1
	case image.YCbCrSubsampleRatio444:
		across, down = 2, 2
	default:
		return nil
	}
	size := image.Rect(0, 0, m.Rect.Dx()/2, m.Rect.Dy()/2)
	half := &image.YCbCr{Rect: size, SubsampleRatio: image.YCbCrSubsampleRatio444}
	half.Y, half.YStride = means(m.Y, m.YStride, size, 2, 2)
	half.Cb, half.CStride = means(m.Cb, m.CStride, size, across, down)
	half.Cr, _ = means(m.Cr, m.CStride, size, across, down)
	return half
}

// means returns samples of a size, each the mean of across × down samples of
// from.
func means(from []byte, stride int, size image.Rectangle, across, down int) ([]byte, int) {
	if across == 1 && down == 1 {
		return from, stride
	}
	width := size.Dx()
	to := make([]byte, width*size.Dy())
	second := (down - 1) * stride // from a row to the second row of its mean
	for y := range size.Dy() {
		row, above := to[y*width:][:width], from[y*down*stride:]
		below := above[second:]
		for x := range row {
			// Where there are two samples, each counts twice.
			left, right := x*across, x*across+across-1
			sum := int(above[left]) + int(above[right]) + int(below[left]) + int(below[right])
			row[x] = byte((sum + 2) / 4)
		}
	}
	return to, width
}

// oriented returns src rotated by the orientation turn.
func oriented(src *image.RGBA, turn int) *image.RGBA {
	if turn == upright {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	// from returns the pixel of src for x, y.
	from := [...]func(x, y int) (int, int){
		2: func(x, y int) (int, int) { return w - 1 - x, y },
		3: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y },
		4: func(x, y int) (int, int) { return x, h - 1 - y },
		5: func(x, y int) (int, int) { return y, x },
		6: func(x, y int) (int, int) { return y, h - 1 - x },
		7: func(x, y int) (int, int) { return w - 1 - y, h - 1 - x },
		8: func(x, y int) (int, int) { return w - 1 - y, x },
	}[turn]
	size := image.Rect(0, 0, w, h)
	if turn >= 5 { // rotated by a quarter
		size = image.Rect(0, 0, h, w)
	}
	turned := image.NewRGBA(size)
	for y := range size.Dy() {
		for x := range size.Dx() {
			fromX, fromY := from(x, y)
			copy(turned.Pix[turned.PixOffset(x, y):][:4], src.Pix[src.PixOffset(fromX, fromY):][:4])
		}
	}
	return turned
}

// black covers a part of a picture, including pixels that it touches.
func black(drawn *image.RGBA, r report.Rect) {
	w, h := float64(drawn.Rect.Dx()), float64(drawn.Rect.Dy())
	part := image.Rect(
		int(math.Floor(r.X*w)), int(math.Floor(r.Y*h)),
		int(math.Ceil((r.X+r.Width)*w)), int(math.Ceil((r.Y+r.Height)*h)))
	draw.Draw(drawn, part.Intersect(drawn.Rect), image.NewUniform(color.Black), image.Point{}, draw.Src)
}
