package picture

import (
	"bytes"
	"errors"
	"image"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// header returns the start of a JPEG file with a frame of components, each with
// its sampling factors.
func header(marker byte, factors ...byte) []byte {
	file := []byte{0xFF, markerSOI, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xFF, marker, 0, byte(8 + 3*len(factors)), 8, 0, 160, 0, 160, byte(len(factors))}
	for i, f := range factors {
		file = append(file, byte(i+1), f, 0)
	}
	return file
}

// The bytes per pixel are those that package image/jpeg holds.
func TestJPEGMemory(t *testing.T) {
	t.Parallel()
	const pixels = 176 * 176 // 160, rounded up as far as any subsampling may need
	for _, tt := range []struct {
		name string
		file []byte
		want float64 // bytes per pixel
	}{
		{"gray", header(markerSOF0, 0x11), 1},
		{"gray with factors", header(markerSOF0, 0x22), 1},
		{"4:2:0", header(markerSOF0, 0x22, 0x11, 0x11), 1.5},
		{"4:2:2", header(markerSOF1, 0x21, 0x11, 0x11), 2},
		{"4:4:4", header(markerSOF0, 0x11, 0x11, 0x11), 3},
		{"progressive 4:2:0", header(markerSOF2, 0x22, 0x11, 0x11), 7.5},
		{"progressive 4:4:4", header(markerSOF2, 0x11, 0x11, 0x11), 15},
		{"CMYK", header(markerSOF0, 0x11, 0x11, 0x11, 0x11), 12},
		{"no frame", []byte{0xFF, markerSOI, 0xFF, markerSOS, 0, 2}, 28},
		{"cut", header(markerSOF0, 0x22, 0x11, 0x11)[:20], 28},
	} {
		if got := float64(jpegMemory(tt.file, image.Config{Width: 160, Height: 160})) / pixels; got != tt.want {
			t.Errorf("%s: %v bytes per pixel, want %v", tt.name, got, tt.want)
		}
	}
}

// A small file that goes over a large picture thousands of times is refused before
// it is decoded; what cameras and programs write is not.
func TestScansAreCounted(t *testing.T) {
	t.Parallel()
	// A gray progressive picture; one Huffman code, of one bit, for 2¹⁴ empty blocks
	// and as many again as the next 14 bits say.
	file := []byte{0xFF, markerSOI, 0xFF, markerSOF2, 0, 11, 8, 6000 >> 8, 6000 & 255, 8000 >> 8, 8000 & 255, 1, 1, 0x11, 0}
	file = append(file, 0xFF, 0xC4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xE0)
	scan := []byte{0xFF, markerSOS, 0, 8, 1, 1, 0, 1, 63, 0}
	for range 12 { // 23 × 32767 blocks, 15 bits each: two codes are 30 bits, and two ones fill the last byte
		scan = append(scan, 0x7F, 0xFE, 0xFF, 0x00, 0xFF, 0x00)
	}
	many := slices.Concat(file, bytes.Repeat(scan, 2000), []byte{0xFF, markerEOI})
	if got := scans(many); got != 2000 {
		t.Errorf("%d scans, want 2000", got)
	}
	_, err := NewMaker(50_000_000, 512<<20, 1).Make(t.Context(), many)
	if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Reason != report.PhotoDamaged {
		t.Errorf("Make: %v, want a refusal as damaged", err)
	}
	for name, want := range map[string]int{"progressive.jpg": 10, "progressive-444.jpg": 10, "cmyk.jpg": 1, "lossy.webp": 0} {
		known, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := scans(known); got != want {
			t.Errorf("%s: %d scans, want %d", name, got, want)
		}
	}
}
