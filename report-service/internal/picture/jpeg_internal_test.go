package picture

import (
	"image"
	"testing"
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
