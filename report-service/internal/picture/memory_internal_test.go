package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Decoding allocates no more than is counted for it before, so that the worker keeps
// within its memory. No other test runs at the same time: it counts what the process
// allocates. Interlaced PNG files are not among these: they leave more behind than
// they hold at a time.
func TestMemoryIsCounted(t *testing.T) {
	const width, height = 800, 600
	bounds := image.Rect(0, 0, width, height)
	encode := func(write func(*bytes.Buffer) error) []byte {
		var file bytes.Buffer
		if err := write(&file); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	asPNG := func(m image.Image) []byte { return encode(func(b *bytes.Buffer) error { return png.Encode(b, m) }) }
	asJPEG := func(m image.Image) []byte {
		return encode(func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) })
	}
	palette := color.Palette{color.Black, color.White, color.Transparent}
	files := map[string][]byte{
		"jpeg": asJPEG(image.NewRGBA(bounds)), "gray jpeg": asJPEG(image.NewGray(bounds)),
		"png": asPNG(opaque(bounds)), "transparent png": asPNG(image.NewNRGBA(bounds)), "gray png": asPNG(image.NewGray(bounds)),
		"16 bit png": asPNG(image.NewNRGBA64(bounds)), "gray 16 bit png": asPNG(image.NewGray16(bounds)),
		"paletted png": asPNG(image.NewPaletted(bounds, palette)),
		"gif":          encode(func(b *bytes.Buffer) error { return gif.Encode(b, image.NewPaletted(bounds, palette), nil) }),
	}
	for _, name := range []string{"progressive.jpg", "progressive-444.jpg", "cmyk.jpg", "lossy.webp", "lossless.webp", "transparent.webp", "animated.webp"} {
		file, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	for name, file := range files {
		f, err := sniff(file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		config, err := f.config(f.open(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decoded, err := f.decode(f.open(file))
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if decoded.Bounds() != bounds {
			t.Errorf("%s: %v, want %v", name, decoded.Bounds(), bounds)
		}
		const tables = 256 << 10 // whatever the size
		took, counted := int64(after.TotalAlloc-before.TotalAlloc), f.memory(file, config)
		t.Logf("%-20s %9d bytes, counted %9d", name, took, counted)
		if took > counted+tables {
			t.Errorf("%s: decoding allocates %d bytes, and %d are counted", name, took, counted)
		}
	}
}

func opaque(bounds image.Rectangle) image.Image {
	m := image.NewRGBA(bounds)
	for i := range m.Pix {
		m.Pix[i] = 255
	}
	return m
}

// The largest picture, except for an interlaced PNG, leaves room for a small
// one in the worker's usual memory: those of others would wait for it otherwise.
func TestLargePNGLeavesRoom(t *testing.T) {
	t.Parallel()
	const usual = 400_000_000 // of 512 MiB, what is neither the worker's own nor an upload's
	size := image.Config{ColorModel: color.RGBAModel, Width: 8000, Height: 6000}
	need := pngMemory(make([]byte, pngInterlaced+1), size) + int64(size.Width*size.Height) + overhead
	if room := NewMaker(50_000_000, usual, 1).mostLarge; need > room {
		t.Errorf("it needs %d bytes, and large ones may have %d", need, room)
	}
}
