package picture

import (
	"image"
	"math/rand/v2"
	"testing"
)

// However a camera stores colours, each pixel of a half is the mean of four.
func TestHalve(t *testing.T) {
	t.Parallel()
	for _, ratio := range []image.YCbCrSubsampleRatio{
		image.YCbCrSubsampleRatio420, image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio440, image.YCbCrSubsampleRatio444,
	} {
		for _, size := range []image.Point{{64, 48}, {65, 49}, {2, 2}, {3, 2}} {
			m := image.NewYCbCr(image.Rect(0, 0, size.X, size.Y), ratio)
			for _, samples := range [][]byte{m.Y, m.Cb, m.Cr} {
				for i := range samples {
					samples[i] = byte(rand.Uint32())
				}
			}
			half := halve(m).(*image.YCbCr)
			if got, want := half.Bounds(), image.Rect(0, 0, size.X/2, size.Y/2); got != want {
				t.Fatalf("%v of %v: %v, want %v", ratio, size, got, want)
			}
			for y := range size.Y / 2 {
				for x := range size.X / 2 {
					var brightness, blue, red int
					for _, at := range []image.Point{{2 * x, 2 * y}, {2*x + 1, 2 * y}, {2 * x, 2*y + 1}, {2*x + 1, 2*y + 1}} {
						c := m.YCbCrAt(at.X, at.Y)
						brightness, blue, red = brightness+int(c.Y), blue+int(c.Cb), red+int(c.Cr)
					}
					got := half.YCbCrAt(x, y)
					if int(got.Y) != (brightness+2)/4 || int(got.Cb) != (blue+2)/4 || int(got.Cr) != (red+2)/4 {
						t.Fatalf("%v of %v at %d, %d: %v, want means of four", ratio, size, x, y, got)
					}
				}
			}
		}
	}
	for _, other := range []image.Image{
		image.NewRGBA(image.Rect(0, 0, 4, 4)), image.NewYCbCr(image.Rect(0, 0, 8, 8), image.YCbCrSubsampleRatio411),
		image.NewYCbCr(image.Rect(2, 2, 8, 8), image.YCbCrSubsampleRatio420),
	} {
		if halve(other) != nil {
			t.Errorf("%T was halved", other)
		}
	}
}

// watched is a picture that counts the pixels that are looked at to find out whether all
// are opaque.
type watched struct {
	*image.NRGBA
	seen *int
}

func (w watched) Opaque() bool {
	*w.seen += w.Rect.Dx() * w.Rect.Dy()
	return w.NRGBA.Opaque()
}

func (w watched) SubImage(part image.Rectangle) image.Image {
	return watched{w.NRGBA.SubImage(part).(*image.NRGBA), w.seen}
}

// Drawing in bands looks at each pixel once, not once a band.
func TestShrinkLooksOnce(t *testing.T) {
	t.Parallel()
	const width, height = 64, 50 * band
	var seen int
	if _, err := shrink(t.Context(), watched{image.NewNRGBA(image.Rect(0, 0, width, height)), &seen}, width/2, height/2, nil); err != nil {
		t.Fatal(err)
	}
	if seen == 0 || seen > width*height {
		t.Errorf("%d pixels were looked at, want up to %d", seen, width*height)
	}
}
