package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"io"
	"slices"
	"testing"
)

// restarting returns a grey JPEG with a restart marker after each interval of units.
func restarting(t *testing.T, width, height, interval int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	file := b.Bytes()
	begins, _ := scansOf(file)
	scan := begins[0]
	head := scan + 2 + int(binary.BigEndian.Uint16(file[scan+2:]))
	dri := binary.BigEndian.AppendUint16([]byte{0xFF, markerDRI, 0, 4}, uint16(interval))
	tables := tablesOf(file[:scan])
	unit := slices.Repeat(slices.Concat(tables.codes[0], tables.codes[0x10]), 4)
	unit = append(unit, slices.Repeat(slices.Concat(tables.codes[1], tables.codes[0x11]), 2)...)
	out := slices.Concat(file[:scan], dri, file[scan:head])
	for done := 0; done < tables.units; done += interval {
		if done > 0 {
			out = append(out, 0xFF, markerRST0+byte(done/interval-1)%8)
		}
		out = append(out, coded(unit, min(interval, tables.units-done))...)
	}
	return append(out, 0xFF, markerEOI)
}

// A picture with restart markers goes on from the last of them.
func TestMendBehindRestartMarkers(t *testing.T) {
	t.Parallel()
	const width, height = 640, 480
	for _, interval := range []int{1, 7, 40} {
		file := restarting(t, width, height, interval)
		for _, cut := range []int{0, 1, 2, 3, 9, len(file) / 200, len(file) / 100} {
			m, err := jpeg.Decode(mendJPEG(file[:len(file)-cut]))
			if err != nil || m.Bounds().Dx() != width || m.Bounds().Dy() != height {
				t.Errorf("interval %d, without the last %d of %d bytes: %v", interval, cut, len(file), err)
			}
		}
		if _, err := jpeg.Decode(mendJPEG(file[:len(file)*3/4])); err == nil {
			t.Errorf("interval %d: three quarters are taken for a picture", interval)
		}
	}
}

// Whatever is cut off or altered, mending reads no byte that is not there.
func FuzzMend(f *testing.F) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, 40, 30)), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()-5])
	f.Add([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x01tRNSx"))
	f.Fuzz(func(_ *testing.T, file []byte) {
		_, _ = io.Copy(io.Discard, mendJPEG(file))
		_, _ = io.Copy(io.Discard, mendPNG(file))
	})
}
