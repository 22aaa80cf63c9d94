package picture

import (
	"bytes"
	"encoding/binary"
	"image"
)

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	markerSOF0  = 0xC0 // a frame: baseline,
	markerSOF1  = 0xC1 // extended,
	markerSOF2  = 0xC2 // progressive
	markerRST0  = 0xD0 // to 0xD7: without a length, like the next two
	markerDHT   = 0xC4 // Huffman tables
	markerSOI   = 0xD8
	markerEOI   = 0xD9
	markerSOS   = 0xDA
	markerDRI   = 0xDD // after how many units there is a restart marker
	markerTEM   = 0x01
	markerApp1  = 0xE1
	markerApp14 = 0xEE
)

// maxScans is how many times a JPEG may go over its picture. Programs write 10 at
// most. A scan takes 75 bytes of a file, and a tenth of a second for 48 megapixels:
// without a limit one upload would keep the worker busy for hours.
const maxScans = 100

// scans counts the scans of a JPEG file; any other has none.
func scans(file []byte) int {
	begins, _ := scansOf(file)
	return len(begins)
}

// jpegMemory returns the memory of package image/jpeg for a picture: a byte for
// each sample; for a progressive one also the coefficients of all samples,
// which are four times as large; and the pixels again if the samples are not
// YCbCr.
func jpegMemory(upload []byte, c image.Config) int64 {
	frame := frameOf(upload)
	block := func(n int) int64 { return int64(n+31) / 16 * 16 } // rounded up to whole blocks
	pixels := block(c.Width) * block(c.Height)
	samples := pixels * frame.samples / frame.perPixels
	need := samples
	if frame.progressive {
		need += 4 * samples
	}
	switch {
	case frame.components == 4:
		need += 8 * pixels
	case frame.rgb:
		need += 4 * pixels
	}
	return need
}

// A frame is what the memory for a JPEG picture depends on: perPixels pixels
// have so many samples.
type frame struct {
	components         int
	samples, perPixels int64
	progressive, rgb   bool
}

// frameOf finds the frame of a file whose header was decoded. Without a frame
// it assumes the worst.
func frameOf(file []byte) frame {
	f := frame{components: 4, samples: 4, perPixels: 1, progressive: true}
	rgb := false
	for i := 2; i+4 <= len(file); {
		if file[i] != 0xFF { // between segments; decoders look for the next one
			i++
			continue
		}
		marker := file[i+1]
		if marker == 0xFF { // a fill byte
			i++
			continue
		}
		if marker == markerTEM || marker >= markerRST0 && marker <= markerEOI || marker == 0 {
			i += 2
			continue
		}
		length := int(binary.BigEndian.Uint16(file[i+2:]))
		if marker == markerSOS || length < 2 || i+2+length > len(file) {
			break
		}
		segment := file[i+4 : i+2+length]
		switch marker {
		case markerApp14: // Adobe's; the last byte is the coding of the samples
			rgb = len(segment) >= 12 && bytes.HasPrefix(segment, []byte("Adobe")) && segment[11] == 0
		case markerSOF0, markerSOF1, markerSOF2:
			if found, ok := readFrame(segment); ok {
				found.progressive = marker == markerSOF2
				found.rgb = found.rgb || rgb && found.components == 3
				return found
			}
			return f
		}
		i += 2 + length
	}
	return f
}

// readFrame reads the segment of a frame: precision, height, width, and for each
// component its id and its sampling factors.
func readFrame(segment []byte) (f frame, ok bool) {
	const head, each = 6, 3
	if len(segment) < head || len(segment) < head+each*int(segment[5]) || segment[5] == 0 {
		return f, false
	}
	f.components = int(segment[5])
	ids := make([]byte, f.components)
	horizontal, vertical := int64(1), int64(1)
	for i := range f.components {
		c := segment[head+each*i:]
		h, v := int64(c[1]>>4), int64(c[1]&15)
		ids[i] = c[0]
		f.samples += h * v
		horizontal, vertical = max(horizontal, h), max(vertical, v)
	}
	f.perPixels = horizontal * vertical
	if f.components == 1 { // a single component's factors are ignored
		f.samples, f.perPixels = 1, 1
	}
	f.rgb = string(ids) == "RGB"
	return f, f.samples > 0
}
