package picture

import (
	"bytes"
	"image"
	"image/color"
	"io"
	"math"

	"github.com/bep/imagemeta"
	"golang.org/x/image/draw"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A format is how a kind of file is read.
type format struct {
	// open reads the part of an upload that is decoded.
	open   func(upload []byte) io.Reader
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	// memory counts what decode holds at most, in bytes.
	memory func(upload []byte, c image.Config) int64
	exif   imagemeta.ImageFormat // exifNone if it has none
}

const (
	exifNone = imagemeta.ImageFormatAuto
	exifJPEG = imagemeta.JPEG
	exifPNG  = imagemeta.PNG
	exifWebP = imagemeta.WebP
)

// upright is the orientation of a picture that is not to be turned.
const upright = 1

// maxTags is after how many tags the orientation is given up: cameras write some
// hundred.
const maxTags = 1000

// orientation reads how the camera was held, 1 to 8 (EXIF 2.32, tag 0x0112).
// It is the only tag that is read. One that cannot be read is upright.
func orientation(upload []byte, f format) int {
	found := upright
	if f.exif == exifNone {
		return found
	}
	isOrientation := func(tag imagemeta.TagInfo) bool {
		return tag.Source == imagemeta.EXIF && tag.Tag == "Orientation" && tag.Namespace == "IFD0"
	}
	_, err := imagemeta.Decode(imagemeta.Options{
		R: bytes.NewReader(upload), ImageFormat: f.exif, Sources: imagemeta.EXIF, LimitNumTags: maxTags,
		ShouldHandleTag: isOrientation,
		HandleTag: func(tag imagemeta.TagInfo) error {
			if value, ok := tag.Value.(uint16); ok && value >= 1 && value <= 8 {
				found = int(value)
			}
			return imagemeta.ErrStopWalking
		},
	})
	if err != nil {
		return upright
	}
	return found
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

// shrink draws src on white, at a size that is not above its own.
//
// It halves as long as it can, each pixel being the mean of four, and then takes
// one step of less than two. The better interpolations of package draw keep 32
// bytes for each pixel of a column of the source: 200 MB for what a telephone
// takes, against a quarter of the source here.
func shrink(src image.Image, width, height int) *image.RGBA {
	for {
		from := src.Bounds()
		to := image.Rect(0, 0, width, height)
		if from.Dx() >= 2*width && from.Dy() >= 2*height {
			to = image.Rect(0, 0, from.Dx()/2, from.Dy()/2)
			if half := halve(src); half != nil {
				src = half
				continue
			}
		}
		drawn := image.NewRGBA(to)
		draw.Draw(drawn, to, image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.ApproxBiLinear.Scale(drawn, to, src, from, draw.Over, nil)
		if to.Dx() == width && to.Dy() == height {
			return drawn
		}
		src = drawn
	}
}

// halve returns half of what cameras make, and nil of anything else. Brightness and
// colours are halved as they are stored, which is faster than as pixels by far; most
// store colours at half the size already, and these are taken over.
func halve(src image.Image) image.Image {
	m, ok := src.(*image.YCbCr)
	if !ok || m.Rect.Min != (image.Point{}) {
		return nil
	}
	var across, down int // how many samples of colour become one
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

// means returns samples of a size, each the mean of so many of those in from.
func means(from []byte, stride int, size image.Rectangle, across, down int) ([]byte, int) {
	if across == 1 && down == 1 {
		return from, stride
	}
	width := size.Dx()
	to := make([]byte, width*size.Dy())
	second := (down - 1) * stride // from a row to the other one of its mean
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

// oriented returns src as it was seen when the camera was held as turn says.
func oriented(src *image.RGBA, turn int) *image.RGBA {
	if turn == upright {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	// from returns the pixel of src that is at x, y.
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
	if turn >= 5 { // on its side
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

// black covers a part of a picture, and every pixel that the part touches.
func black(drawn *image.RGBA, r report.Rect) {
	w, h := float64(drawn.Rect.Dx()), float64(drawn.Rect.Dy())
	part := image.Rect(
		int(math.Floor(r.X*w)), int(math.Floor(r.Y*h)),
		int(math.Ceil((r.X+r.Width)*w)), int(math.Ceil((r.Y+r.Height)*h)))
	draw.Draw(drawn, part.Intersect(drawn.Rect), image.NewUniform(color.Black), image.Point{}, draw.Src)
}
