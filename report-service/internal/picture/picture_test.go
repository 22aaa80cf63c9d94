package picture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const megabyte = 1 << 20

func newMaker() *picture.Maker { return picture.NewMaker(50_000_000, 512*megabyte) }

// quarters are the colours of the corners of a test picture, by rows.
var quarters = [4]color.RGBA{{200, 0, 0, 255}, {0, 200, 0, 255}, {0, 0, 200, 255}, {200, 200, 0, 255}}

// scene is a picture that tells each of its sides from the others.
func scene(width, height int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.SetRGBA(x, y, quarters[y*2/height*2+x*2/width])
		}
	}
	return m
}

func encodeJPEG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := jpeg.Encode(&file, m, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func encodePNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := png.Encode(&file, m); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// canary is in every tag of tagged files.
const canary = "canary-6.9S107.6E"

// tagged returns a JPEG file with EXIF tags: how the camera was held, a place in
// a GPS directory, a description, and a thumbnail; and with XMP, a comment and
// what is behind its end.
func tagged(file []byte, orientation uint16) []byte {
	var tiff bytes.Buffer
	order := binary.LittleEndian
	write := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&tiff, order, v) // a buffer takes everything
		}
	}
	text := canary + "\x00"
	const ifd0, entries, gps = 8, 3, 8 + 2 + 3*12 + 4
	const texts = gps + 2 + 12 + 4
	write([]byte("II*\x00"), uint32(ifd0), uint16(entries))
	write(uint16(0x010E), uint16(2), uint32(len(text)), uint32(texts)) // ImageDescription
	write(uint16(0x0112), uint16(3), uint32(1), orientation, uint16(0))
	write(uint16(0x8825), uint16(4), uint32(1), uint32(gps), uint32(0))
	write(uint16(1), uint16(0x001D), uint16(2), uint32(len(text)), uint32(texts), uint32(0)) // GPSDateStamp
	write([]byte(text))
	segment := func(marker byte, content string) []byte {
		s := []byte{0xFF, marker, 0, 0}
		binary.BigEndian.PutUint16(s[2:], uint16(len(content)+2))
		return append(s, content...)
	}
	out := bytes.Clone(file[:2])
	out = append(out, segment(0xE1, "Exif\x00\x00"+tiff.String())...)
	out = append(out, segment(0xE1, "http://ns.adobe.com/xap/1.0/\x00<x>"+canary+"</x>")...)
	out = append(out, segment(0xFE, canary)...)
	out = append(out, file[2:]...)
	return append(out, "PK\x03\x04"+canary...)
}

// check fails the test unless p are pictures of a scene, upright and with
// nothing but what they show.
func check(t *testing.T, what string, p picture.Pictures, width, height int) {
	t.Helper()
	if p.Width != width || p.Height != height {
		t.Errorf("%s: %d × %d, want %d × %d", what, p.Width, p.Height, width, height)
	}
	for _, size := range picture.Sizes {
		file := p.Files[size]
		m, err := jpeg.Decode(bytes.NewReader(file))
		if err != nil {
			t.Errorf("%s: size %d: %v", what, size, err)
			continue
		}
		b := m.Bounds()
		if longest, want := max(b.Dx(), b.Dy()), min(size, max(width, height)); longest != want {
			t.Errorf("%s: size %d: longest side %d, want %d", what, size, longest, want)
		}
		for i, want := range quarters {
			x, y := b.Dx()*(1+i%2*2)/4, b.Dy()*(1+i/2*2)/4
			if got := color.RGBAModel.Convert(m.At(x, y)).(color.RGBA); distance(got, want) > 60 {
				t.Errorf("%s: size %d: quarter %d is %v, want %v", what, size, i, got, want)
			}
		}
		checkBare(t, what, file)
	}
}

func distance(a, b color.RGBA) int {
	d := func(x, y uint8) int { return max(int(x)-int(y), int(y)-int(x)) }
	return d(a.R, b.R) + d(a.G, b.G) + d(a.B, b.B)
}

// checkBare fails the test if file has a tag or a comment.
func checkBare(t *testing.T, what string, file []byte) {
	t.Helper()
	if bytes.Contains(file, []byte("canary")) {
		t.Errorf("%s: the canary is left", what)
	}
	for i := 2; i+4 <= len(file) && file[i+1] != 0xDA; i += 2 + int(binary.BigEndian.Uint16(file[i+2:])) {
		if marker := file[i+1]; marker >= 0xE0 && marker <= 0xEF || marker == 0xFE {
			t.Errorf("%s: a segment %X is left", what, marker)
		}
	}
	if !bytes.HasSuffix(file, []byte{0xFF, 0xD9}) {
		t.Errorf("%s: something is behind the end", what)
	}
}

// However the camera was held, the pictures are upright, and none of the tags is left.
func TestOrientations(t *testing.T) {
	t.Parallel()
	const width, height = 96, 64
	upright := scene(width, height)
	// visual returns where the pixel of a stored picture is seen: EXIF says at
	// which side its first row and its first column are.
	visual := map[uint16]func(x, y int) (int, int){
		1: func(x, y int) (int, int) { return x, y },                          // top, left
		2: func(x, y int) (int, int) { return width - 1 - x, y },              // top, right
		3: func(x, y int) (int, int) { return width - 1 - x, height - 1 - y }, // bottom, right
		4: func(x, y int) (int, int) { return x, height - 1 - y },             // bottom, left
		5: func(x, y int) (int, int) { return y, x },                          // left, top
		6: func(x, y int) (int, int) { return width - 1 - y, x },              // right, top
		7: func(x, y int) (int, int) { return width - 1 - y, height - 1 - x }, // right, bottom
		8: func(x, y int) (int, int) { return y, height - 1 - x },             // left, bottom
		0: func(x, y int) (int, int) { return x, y },                          // nonsense
		9: func(x, y int) (int, int) { return x, y },
	}
	for orientation, at := range visual {
		size := image.Rect(0, 0, width, height)
		if orientation >= 5 && orientation <= 8 {
			size = image.Rect(0, 0, height, width)
		}
		stored := image.NewRGBA(size)
		for y := range size.Dy() {
			for x := range size.Dx() {
				stored.Set(x, y, upright.At(at(x, y)))
			}
		}
		p, err := newMaker().Make(t.Context(), tagged(encodeJPEG(t, stored), orientation))
		if err != nil {
			t.Errorf("orientation %d: %v", orientation, err)
			continue
		}
		check(t, fmt.Sprintf("orientation %d", orientation), p, width, height)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	const width, height = 96, 64
	m := scene(width, height)
	gray := image.NewGray16(m.Rect)
	deep := image.NewNRGBA64(m.Rect)
	half := image.NewNRGBA(m.Rect) // half transparent: it is drawn on white
	paletted := image.NewPaletted(m.Rect, color.Palette{quarters[0], quarters[1], quarters[2], quarters[3]})
	for y := range height {
		for x := range width {
			c := m.RGBAAt(x, y)
			gray.Set(x, y, c)
			deep.Set(x, y, c)
			half.Set(x, y, color.NRGBA{c.R, c.G, c.B, 128})
			paletted.Set(x, y, c)
		}
	}
	var animated bytes.Buffer
	black := image.NewPaletted(m.Rect, color.Palette{color.Black})
	err := gif.EncodeAll(&animated, &gif.GIF{Image: []*image.Paletted{paletted, black, black}, Delay: []int{1, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{
		"jpeg": encodeJPEG(t, m), "png": encodePNG(t, m), "16 bit png": encodePNG(t, deep), "paletted png": encodePNG(t, paletted),
		"first picture of a gif": animated.Bytes(),
	} {
		p, err := newMaker().Make(t.Context(), file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		check(t, name, p, width, height)
	}
	for name, file := range map[string][]byte{"gray": encodePNG(t, gray), "half transparent": encodePNG(t, half)} {
		if _, err := newMaker().Make(t.Context(), file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ width, height, wantWidth, wantHeight int }{
		{1, 1, 1, 1}, {320, 200, 320, 200}, {2048, 1024, 2048, 1024}, {2050, 10, 2048, 10},
		{4000, 3000, 2048, 1536}, {3000, 4000, 1536, 2048}, {9000, 500, 2048, 114}, {12000, 1, 2048, 1},
	} {
		p, err := newMaker().Make(t.Context(), encodeJPEG(t, scene(tt.width, tt.height)))
		if err != nil {
			t.Errorf("%d × %d: %v", tt.width, tt.height, err)
			continue
		}
		if p.Width != tt.wantWidth || p.Height != tt.wantHeight || len(p.Files) != len(picture.Sizes) {
			t.Errorf("%d × %d: %d × %d in %d files, want %d × %d in %d", tt.width, tt.height, p.Width, p.Height, len(p.Files), tt.wantWidth, tt.wantHeight, len(picture.Sizes))
		}
	}
}

// bomb returns a small PNG file whose header claims another size.
func bomb(t testing.TB, width, height uint32) []byte {
	t.Helper()
	file := encodePNG(t, scene(2, 2))
	binary.BigEndian.PutUint32(file[16:], width)
	binary.BigEndian.PutUint32(file[20:], height)
	binary.BigEndian.PutUint32(file[29:], crc32.ChecksumIEEE(file[12:29]))
	return file
}

// What is no picture, or none that is taken, is refused with its reason.
func TestRefusals(t *testing.T) {
	t.Parallel()
	whole := encodeJPEG(t, scene(640, 480))
	huge := bytes.Clone(whole)
	frame := bytes.Index(huge, []byte{0xFF, 0xC0})
	binary.BigEndian.PutUint16(huge[frame+5:], 65_500)
	binary.BigEndian.PutUint16(huge[frame+7:], 65_500)
	wide := gifHeader(65_535, 65_535)
	for _, tt := range []struct {
		name string
		file []byte
		want report.PhotoReason
	}{
		{"empty", nil, report.PhotoUnsupported},
		{"text", []byte("hello"), report.PhotoUnsupported},
		{"svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), report.PhotoUnsupported},
		{"html", []byte("<!DOCTYPE html><script>alert(1)</script>"), report.PhotoUnsupported},
		{"heic", []byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"), report.PhotoUnsupported},
		{"pdf", []byte("%PDF-1.7"), report.PhotoUnsupported},
		{"zip", []byte("PK\x03\x04"), report.PhotoUnsupported},
		{"bmp", []byte("BM\x00\x00\x00\x00\x00\x00"), report.PhotoUnsupported},
		{"start of a jpeg", whole[:3], report.PhotoDamaged},
		{"cut jpeg", whole[:len(whole)*6/10], report.PhotoDamaged},
		{"cut png", encodePNG(t, scene(640, 480))[:300], report.PhotoDamaged},
		{"png bomb", bomb(t, 30_000, 30_000), report.PhotoTooLarge},
		{"wide png", bomb(t, 12_001, 1), report.PhotoTooLarge},
		{"png of a size that overflows", bomb(t, 1<<31-1, 1<<31-1), report.PhotoDamaged},
		{"png that has less than it says", bomb(t, 3000, 3000), report.PhotoDamaged},
		{"jpeg bomb", huge, report.PhotoTooLarge},
		{"gif bomb", wide, report.PhotoTooLarge},
		{"gif without pictures", gifHeader(10, 10), report.PhotoDamaged},
		{"webp without pictures", []byte("RIFF\x0c\x00\x00\x00WEBPVP8 "), report.PhotoDamaged},
	} {
		p, err := newMaker().Make(t.Context(), tt.file)
		refused, ok := errors.AsType[*picture.Refusal](err)
		if !ok || refused.Reason != tt.want {
			t.Errorf("%s: %d files, error %v; want it refused as %s", tt.name, len(p.Files), err, tt.want)
		}
	}
}

func gifHeader(width, height uint16) []byte {
	file := append([]byte("GIF89a"), 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint16(file[6:], width)
	binary.LittleEndian.PutUint16(file[8:], height)
	return append(file, 0x3B)
}

// A picture that is too large for the memory alone is refused, and pictures that
// are too large together wait for one another.
func TestBudget(t *testing.T) {
	t.Parallel()
	file := encodeJPEG(t, scene(4000, 3000)) // 18 MB of samples, 12 of its half, 40 of overhead
	if _, err := picture.NewMaker(50_000_000, 60*megabyte).Make(t.Context(), file); err == nil {
		t.Error("made within 60 MiB, want a refusal")
	} else if refused, ok := errors.AsType[*picture.Refusal](err); !ok || refused.Reason != report.PhotoTooLarge {
		t.Errorf("error %v, want it refused as too large", err)
	}
	if _, err := picture.NewMaker(11_999_999, 512*megabyte).Make(t.Context(), file); err == nil {
		t.Error("made of more pixels than are allowed")
	}
	maker := picture.NewMaker(50_000_000, 100*megabyte)
	var making sync.WaitGroup
	for range 4 {
		making.Go(func() {
			if _, err := maker.Make(t.Context(), file); err != nil {
				t.Errorf("Make: %v", err)
			}
		})
	}
	making.Wait()
	ended, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if _, err := maker.Make(ended, file); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Make after the end: error %v, want the deadline", err)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	p, err := newMaker().Make(t.Context(), encodeJPEG(t, scene(640, 480)))
	if err != nil {
		t.Fatal(err)
	}
	p, err = picture.Redact(p.Files[picture.Sizes[0]], []report.Rect{{X: 0, Y: 0, Width: 0.5, Height: 0.5}, {X: 0.9, Y: 0.9, Width: 5, Height: 5}})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range picture.Sizes {
		m, err := jpeg.Decode(bytes.NewReader(p.Files[size]))
		if err != nil {
			t.Fatal(err)
		}
		b := m.Bounds()
		for _, tt := range []struct {
			x, y float64
			want color.RGBA
		}{{0.25, 0.25, color.RGBA{0, 0, 0, 255}}, {0.95, 0.95, color.RGBA{0, 0, 0, 255}}, {0.75, 0.25, quarters[1]}, {0.25, 0.75, quarters[2]}} {
			got := color.RGBAModel.Convert(m.At(int(tt.x*float64(b.Dx())), int(tt.y*float64(b.Dy())))).(color.RGBA)
			if distance(got, tt.want) > 60 {
				t.Errorf("size %d at %v, %v: %v, want %v", size, tt.x, tt.y, got, tt.want)
			}
		}
	}
}

// Whatever is uploaded, there are pictures or a refusal, and never a tag.
func FuzzMake(f *testing.F) {
	m := scene(40, 30)
	f.Add(encodeJPEG(f, m))
	f.Add(tagged(encodeJPEG(f, m), 6))
	f.Add(encodePNG(f, m))
	f.Add(bomb(f, 3000, 3000))
	f.Add(gifHeader(10, 10))
	f.Add([]byte("RIFF\x0c\x00\x00\x00WEBPVP8 "))
	maker := picture.NewMaker(1_000_000, 128*megabyte)
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := maker.Make(t.Context(), file)
		if err != nil {
			if _, ok := errors.AsType[*picture.Refusal](err); !ok {
				t.Fatalf("error %v, want a refusal", err)
			}
			return
		}
		for _, size := range picture.Sizes {
			made, err := jpeg.Decode(bytes.NewReader(p.Files[size]))
			if err != nil {
				t.Fatalf("size %d: %v", size, err)
			}
			if b := made.Bounds(); b.Dx() > size || b.Dy() > size {
				t.Fatalf("size %d: %v", size, b)
			}
			checkBare(t, "made", p.Files[size])
		}
	})
}
