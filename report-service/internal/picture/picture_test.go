package picture_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const megabyte = 1 << 20

func newMaker() *picture.Maker { return picture.NewMaker(50_000_000, 512*megabyte, 1) }

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
	for name, file := range map[string][]byte{
		"jpeg": encodeJPEG(t, m), "png": encodePNG(t, m), "16 bit png": encodePNG(t, deep), "paletted png": encodePNG(t, paletted),
		"gif": animatedGIF(t, m, 0),
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

// Files that Go's encoders cannot make, made by ImageMagick.
func TestFilesOfOthers(t *testing.T) {
	t.Parallel()
	lossy, lossless, transparent := testdata(t, "lossy.webp"), testdata(t, "lossless.webp"), testdata(t, "transparent.webp")
	twoPictures := animatedWebP(lossy, lossless)
	for name, file := range map[string][]byte{
		"progressive jpeg": testdata(t, "progressive.jpg"), "progressive jpeg without subsampling": testdata(t, "progressive-444.jpg"),
		"CMYK jpeg": testdata(t, "cmyk.jpg"), "interlaced png of 16 bit": testdata(t, "deep-interlaced.png"),
		"webp": lossy, "lossless webp": lossless,
		"animated webp": testdata(t, "animated.webp"), "animated lossless webp": animatedWebP(lossless, lossy),
		"webp that is cut behind its first picture": twoPictures[:len(twoPictures)-20],
	} {
		p, err := newMaker().Make(t.Context(), file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		check(t, name, p, dataWidth, dataHeight)
	}
	// Transparent parts become white.
	for name, file := range map[string][]byte{"transparent webp": transparent, "animated transparent webp": animatedWebP(transparent, lossy)} {
		p, err := newMaker().Make(t.Context(), file)
		if err != nil || p.Width != dataWidth || p.Height != dataHeight {
			t.Errorf("%s: %d × %d, error %v", name, p.Width, p.Height, err)
		}
	}
}

// The size of the pictures in testdata, which are scenes.
const dataWidth, dataHeight = 800, 600

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// animatedWebP returns a WebP file that shows others of testdata one after the
// other.
func animatedWebP(files ...[]byte) []byte { return animatedWebPOf(dataWidth, dataHeight, files...) }

func animatedWebPOf(width, height uint16, files ...[]byte) []byte {
	size := func(n uint16) []byte { return []byte{byte(n - 1), byte((n - 1) >> 8), 0} } // 24 bits
	chunk := func(name string, content ...[]byte) []byte {
		c := slices.Concat(content...)
		return slices.Concat([]byte(name), binary.LittleEndian.AppendUint32(nil, uint32(len(c))), c)
	}
	content := slices.Concat([]byte("WEBP"),
		chunk("VP8X", []byte{1<<1 | 1<<4, 0, 0, 0}, size(width), size(height)), // animation, transparency
		chunk("ANIM", make([]byte, 6)))
	for _, file := range files {
		picture := file[12:] // behind RIFF, size, WEBP
		if bytes.HasPrefix(picture, []byte("VP8X")) {
			picture = picture[18:]
		}
		content = append(content, chunk("ANMF", make([]byte, 6), size(width), size(height), make([]byte, 4), picture)...)
	}
	return chunk("RIFF", content)
}

// animatedPNG returns a PNG file that shows m, and then others of its size, as
// files.
func animatedPNG(t testing.TB, m image.Image, others ...[]byte) []byte {
	t.Helper()
	const signature, head, end = 8, 8 + 25, 12 // signature; with IHDR; IEND
	chunk := func(name string, values ...any) []byte {
		content := []byte(name)
		for _, v := range values {
			content, _ = binary.Append(content, binary.BigEndian, v) // of a fixed size
		}
		c := binary.BigEndian.AppendUint32(nil, uint32(len(content)-len(name)))
		return binary.BigEndian.AppendUint32(append(c, content...), crc32.ChecksumIEEE(content))
	}
	number := uint32(0)
	next := func() uint32 { number++; return number - 1 }
	control := func() []byte {
		return chunk("fcTL", next(), uint32(m.Bounds().Dx()), uint32(m.Bounds().Dy()), uint32(0), uint32(0), uint16(1), uint16(10), uint16(0))
	}
	file := encodePNG(t, m)
	out := slices.Concat(file[:head], chunk("acTL", uint32(1+len(others)), uint32(0)), control(), file[head:len(file)-end])
	for _, other := range others {
		out = append(out, control()...)
		for rest := other[signature:]; len(rest) > 0; {
			size := int(binary.BigEndian.Uint32(rest))
			if string(rest[4:8]) == "IDAT" {
				out = append(out, chunk("fdAT", next(), rest[8:8+size])...)
			}
			rest = rest[12+size:]
		}
	}
	return append(out, file[len(file)-end:]...)
}

func animatedGIF(t testing.TB, m image.Image, others int) []byte {
	t.Helper()
	palette := color.Palette{quarters[0], quarters[1], quarters[2], quarters[3]}
	first, black := image.NewPaletted(m.Bounds(), palette), image.NewPaletted(m.Bounds(), color.Palette{color.Black})
	draw.Draw(first, first.Rect, m, image.Point{}, draw.Src)
	var file bytes.Buffer
	err := gif.EncodeAll(&file, &gif.GIF{Image: append([]*image.Paletted{first}, slices.Repeat([]*image.Paletted{black}, others)...), Delay: make([]int, 1+others)})
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// The first picture of an animation is used, and those behind it take no
// memory, however many there are. No other test runs at the same time: it
// counts what the process allocates.
func TestAnimations(t *testing.T) {
	const width, height, many = 400, 300, 50
	m := scene(width, height)
	dark := image.NewRGBA(m.Rect)
	draw.Draw(dark, dark.Rect, image.Black, image.Point{}, draw.Src)
	black := encodePNG(t, dark)
	lossy := testdata(t, "lossy.webp")
	for _, tt := range []struct {
		name          string
		width, height int
		file          func(others int) []byte
	}{
		{"png", width, height, func(n int) []byte { return animatedPNG(t, m, slices.Repeat([][]byte{black}, n)...) }},
		{"gif", width, height, func(n int) []byte { return animatedGIF(t, m, n) }},
		{"webp", dataWidth, dataHeight, func(n int) []byte { return animatedWebP(slices.Repeat([][]byte{lossy}, n+1)...) }},
	} {
		allocated := func(file []byte) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, err := newMaker().Make(t.Context(), file)
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			check(t, tt.name, p, tt.width, tt.height)
			return after.TotalAlloc - before.TotalAlloc
		}
		one, all := tt.file(0), tt.file(many)
		allocated(one)                                                 // what is made once and kept
		if first, of := allocated(one), allocated(all); of > 2*first { // to decode all would take ten times as much
			t.Errorf("%s: %d bytes for the first of %d pictures, and %d where it is the only one", tt.name, of, many+1, first)
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

// BenchmarkMake makes the pictures of what a telephone and what a camera takes.
func BenchmarkMake(b *testing.B) {
	for _, size := range []image.Point{{4000, 3000}, {8660, 5773}} {
		b.Run(fmt.Sprint(size.X*size.Y/1_000_000, "MP"), func(b *testing.B) {
			m := scene(size.X, size.Y)
			noise := rand.New(rand.NewPCG(1, 2))
			for i := range m.Pix {
				m.Pix[i] ^= byte(noise.Uint32() & 15) // as large as such files are
			}
			file := encodeJPEG(b, m)
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := newMaker().Make(b.Context(), file); err != nil {
					b.Fatal(err)
				}
			}
		})
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

// realBomb returns a PNG file of some hundred KB that has 30,000 × 30,000 black
// pixels, which would be 900 MB.
func realBomb(t testing.TB) []byte {
	t.Helper()
	const side = 30_000
	var content bytes.Buffer
	z, err := zlib.NewWriterLevel(&content, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]byte, 1+side/8) // a bit a pixel
	for range side {
		if _, err := z.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	chunk := func(name string, content []byte) []byte {
		c := append([]byte(name), content...)
		return slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(len(content))), c, binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(c)))
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side)
	return slices.Concat([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(header, 1, 0, 0, 0, 0)), chunk("IDAT", content.Bytes()), chunk("IEND", nil))
}

// A file that is not a picture, or of a type that is not taken, is refused with its
// reason.
func TestRefusals(t *testing.T) {
	t.Parallel()
	whole := encodeJPEG(t, scene(640, 480))
	huge := bytes.Clone(whole)
	frame := bytes.Index(huge, []byte{0xFF, 0xC0})
	binary.BigEndian.PutUint16(huge[frame+5:], 65_500)
	binary.BigEndian.PutUint16(huge[frame+7:], 65_500)
	wide := gifHeader(65_535, 65_535)
	lossy := testdata(t, "lossy.webp")
	animated := animatedWebP(lossy)
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
		{"wide png", bomb(t, 65_536, 1), report.PhotoTooLarge},
		{"jpeg without its last tenth", whole[:len(whole)*9/10], report.PhotoDamaged},
		{"png with a wrong checksum of its picture", wrongSum(encodePNG(t, scene(64, 48)), "IDAT"), report.PhotoDamaged},
		{"png with a wrong checksum of its header", wrongSum(encodePNG(t, scene(64, 48)), "IHDR"), report.PhotoDamaged},
		{"png of a size that overflows", bomb(t, 1<<31-1, 1<<31-1), report.PhotoDamaged},
		{"png that has less than it says", bomb(t, 3000, 3000), report.PhotoDamaged},
		{"jpeg bomb", huge, report.PhotoTooLarge},
		{"gif bomb", wide, report.PhotoTooLarge},
		{"gif without pictures", gifHeader(10, 10), report.PhotoDamaged},
		{"webp without pictures", []byte("RIFF\x0c\x00\x00\x00WEBPVP8 "), report.PhotoDamaged},
		{"animated webp without pictures", animatedWebP(), report.PhotoDamaged},
		{"animated webp that is cut in its first picture", animated[:len(animated)-20], report.PhotoDamaged},
		{"animated webp bomb", animatedWebPOf(16_000, 16_000, lossy), report.PhotoTooLarge},
		{"animated webp whose picture has another size", animatedWebPOf(dataWidth-1, dataHeight, lossy), report.PhotoDamaged},
		{"real png bomb", realBomb(t), report.PhotoTooLarge},
	} {
		p, err := newMaker().Make(t.Context(), tt.file)
		refused, ok := errors.AsType[*picture.Refusal](err)
		if !ok || refused.Reason != tt.want {
			t.Errorf("%s: %d files, error %v; want it refused as %s", tt.name, len(p.Files), err, tt.want)
		}
	}
}

// wrongSum returns a PNG file with a wrong checksum of the chunk with the name.
func wrongSum(file []byte, name string) []byte {
	file = bytes.Clone(file)
	at := bytes.Index(file, []byte(name))
	file[at+4+int(binary.BigEndian.Uint32(file[at-4:]))] ^= 1
	return file
}

// withRemark returns a PNG file with a chunk that is not of the picture before its pixels.
func withRemark(file []byte) []byte {
	at := bytes.Index(file, []byte("IDAT")) - 4
	return slices.Concat(file[:at], []byte("\x00\x00\x00\x06tEXtcanary\x00\x00\x00\x00"), file[at:])
}

// Pictures are made of the files that every program opens.
func TestFilesThatEveryProgramOpens(t *testing.T) {
	t.Parallel()
	const width, height = 640, 480
	whole, grey := encodeJPEG(t, scene(width, height)), encodePNG(t, scene(width, height))
	progressive := testdata(t, "progressive.jpg")
	var noise bytes.Buffer
	m := scene(width, height)
	for y := range height {
		for x := range width {
			c := m.RGBAAt(x, y)
			c.R += byte(rand.IntN(20))
			m.SetRGBA(x, y, c)
		}
	}
	if err := jpeg.Encode(&noise, m, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{
		"jpeg without its end marker":           whole[:len(whole)-2],
		"jpeg without half of its end marker":   whole[:len(whole)-1],
		"jpeg with something behind it":         append(bytes.Clone(whole), "canary"...),
		"jpeg without its last bytes":           whole[:len(whole)-7],
		"noisy jpeg without its end":            noise.Bytes()[:noise.Len()-2],
		"noisy jpeg without half a hundredth":   noise.Bytes()[:noise.Len()*995/1000],
		"noisy jpeg without a hundredth":        noise.Bytes()[:noise.Len()*991/1000],
		"png with a wrong checksum of a remark": withRemark(grey),
		"png without an end":                    grey[:len(grey)-12],
	} {
		p, err := newMaker().Make(t.Context(), file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		check(t, name, p, width, height)
	}
	for name, file := range map[string][]byte{
		"progressive jpeg without its end marker":   progressive[:len(progressive)-2],
		"progressive jpeg without a hundredth":      progressive[:len(progressive)*99/100],
		"progressive jpeg without its last quarter": progressive[:len(progressive)*3/4],
	} {
		p, err := newMaker().Make(t.Context(), file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		check(t, name, p, dataWidth, dataHeight)
	}
	panorama, err := newMaker().Make(t.Context(), encodePNG(t, image.NewGray(image.Rect(0, 0, 13_000, 100))))
	if err != nil || panorama.Width != 2048 || panorama.Height != 16 {
		t.Errorf("a panorama: %d × %d, %v; want 2048 × 16", panorama.Width, panorama.Height, err)
	}
}

// Work ends with its time, wherever it is, and a large picture is not worked on for
// nobody.
func TestWorkEndsWithItsTime(t *testing.T) {
	t.Parallel()
	m := image.NewGray(image.Rect(0, 0, 8000, 6000))
	file := encodePNG(t, m)
	began := time.Now()
	if _, err := newMaker().Make(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	whole := time.Since(began)
	for _, part := range []time.Duration{whole / 20, whole / 4, whole / 2} {
		ctx, cancel := context.WithTimeout(t.Context(), part)
		began := time.Now()
		_, err := newMaker().Make(ctx, file)
		cancel()
		if late := time.Since(began) - part; err != nil && (!errors.Is(err, context.DeadlineExceeded) || late > whole) {
			t.Errorf("after %v of %v: error %v, %v late", part, whole, err, late)
		} else if err == nil && part == whole/20 {
			t.Errorf("after %v of %v: no error", part, whole)
		}
	}
}

// The orientation counts behind any number of tags, and whatever integer type it has.
func TestOrientationOfOtherPrograms(t *testing.T) {
	t.Parallel()
	file := encodeJPEG(t, image.NewRGBA(image.Rect(0, 0, 96, 64)))
	for _, tt := range []struct {
		name     string
		kind     uint16 // EXIF 2.32, 4.6.2
		value    []byte
		behind   int
		sideways bool
	}{
		{"a SHORT", 3, []byte{0, 6, 0, 0}, 0, true},
		{"a LONG", 4, []byte{0, 0, 0, 6}, 0, true},
		{"a BYTE", 1, []byte{6, 0, 0, 0}, 0, true},
		{"an SLONG", 9, []byte{0, 0, 0, 8}, 0, true},
		{"behind 1,500 tags", 3, []byte{0, 6, 0, 0}, 1500, true},
		{"a LONG that is nonsense", 4, []byte{0, 1, 0, 6}, 0, false},
	} {
		exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08")
		exif = binary.BigEndian.AppendUint16(exif, uint16(tt.behind+1))
		entry := func(tag, kind uint16, value []byte) {
			exif = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(exif, tag), kind)
			exif = append(binary.BigEndian.AppendUint32(exif, 1), value...)
		}
		for range tt.behind {
			entry(0x0103, 3, []byte{0, 1, 0, 0})
		}
		entry(0x0112, tt.kind, tt.value)
		exif = append(exif, 0, 0, 0, 0)
		segment := append(binary.BigEndian.AppendUint16([]byte{0xFF, 0xE1}, uint16(len(exif)+2)), exif...)
		p, err := newMaker().Make(t.Context(), slices.Concat(file[:2], segment, file[2:]))
		if sideways := p.Height > p.Width; err != nil || sideways != tt.sideways {
			t.Errorf("%s: %d × %d, %v; want it turned: %t", tt.name, p.Width, p.Height, err, tt.sideways)
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
	if _, err := picture.NewMaker(50_000_000, 60*megabyte, 1).Make(t.Context(), file); err == nil {
		t.Error("made within 60 MiB, want a refusal")
	} else if refused, ok := errors.AsType[*picture.Refusal](err); !ok || refused.Reason != report.PhotoTooLarge {
		t.Errorf("error %v, want it refused as too large", err)
	}
	if _, err := picture.NewMaker(11_999_999, 512*megabyte, 1).Make(t.Context(), file); err == nil {
		t.Error("made of more pixels than are allowed")
	}
	maker := picture.NewMaker(50_000_000, 100*megabyte, 1)
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
	p, err = picture.Redact(t.Context(), p.Files[picture.Sizes[0]], []report.Rect{{X: 0, Y: 0, Width: 0.5, Height: 0.5}, {X: 0.9, Y: 0.9, Width: 5, Height: 5}})
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
	f.Add(animatedPNG(f, m, encodePNG(f, m)))
	f.Add(animatedGIF(f, m, 1))
	for _, name := range []string{"progressive.jpg", "cmyk.jpg", "deep-interlaced.png", "lossless.webp", "transparent.webp", "animated.webp"} {
		f.Add(testdata(f, name))
	}
	maker := picture.NewMaker(1_000_000, 128*megabyte, 1)
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
