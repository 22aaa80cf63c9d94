package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"iter"
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

// A segment is a part of a JPEG file with what is behind its marker, as far as the file goes.
type segment struct {
	marker  byte
	at      int // of the marker
	content []byte
}

// segments yields the segments of a JPEG file, and its end marker. It skips what is between
// them, as decoders do: the data of scans, fill bytes and markers without a length.
func segments(file []byte) iter.Seq[segment] {
	return func(yield func(segment) bool) {
		for i := 2; ; {
			skipped := bytes.IndexByte(file[min(i, len(file)):], 0xFF)
			if i += skipped; skipped < 0 || i+2 > len(file) {
				return
			}
			s := segment{marker: file[i+1], at: i}
			switch {
			case s.marker == 0xFF: // a fill byte
				i++
				continue
			case s.marker == 0 || s.marker == markerTEM || s.marker >= markerRST0 && s.marker <= markerSOI:
				i += 2
				continue
			case s.marker == markerEOI:
				i += 2
			case i+4 > len(file):
				return
			default:
				i += 2 + int(binary.BigEndian.Uint16(file[i+2:]))
				s.content = file[s.at+4 : max(s.at+4, min(i, len(file)))]
			}
			if !yield(s) {
				return
			}
		}
	}
}

// jpegMemory returns the memory of package image/jpeg for a picture: a byte for
// each sample; for a progressive one also the coefficients of all samples,
// which are four times as large; and the pixels again if the samples are not
// YCbCr.
func jpegMemory(upload []byte, c image.Config) int64 {
	frame := frameOf(upload)
	block := func(n int) int64 { return int64(n+31) / 16 * 16 } // rounded up to whole blocks
	pixels := block(c.Width) * block(c.Height)
	need := pixels * int64(frame.samples) / int64(frame.across*frame.down)
	if frame.progressive {
		need *= 5
	}
	switch {
	case frame.components == 4:
		need += 8 * pixels
	case frame.rgb:
		need += 4 * pixels
	}
	return need
}

// A frame is what the header of a picture says of its samples. They come in units, which
// have a number of blocks of each component.
type frame struct {
	width, height    int
	components       int
	blocks           map[byte]int // of a unit, by the id of their component
	samples          int          // of across × down pixels
	across, down     int          // blocks that a unit covers
	progressive, rgb bool
}

// frameOf finds the frame of a file whose header was decoded. Without a frame
// it assumes the worst.
func frameOf(file []byte) frame {
	worst := frame{components: 4, samples: 4, across: 1, down: 1, progressive: true}
	rgb := false
	for s := range segments(file) {
		switch s.marker {
		case markerSOS:
			return worst
		case markerApp14: // Adobe's; the last byte is the coding of the samples
			rgb = len(s.content) >= 12 && bytes.HasPrefix(s.content, []byte("Adobe")) && s.content[11] == 0
		case markerSOF0, markerSOF1, markerSOF2:
			found, ok := readFrame(s.content)
			if !ok {
				return worst
			}
			found.progressive = s.marker == markerSOF2
			found.rgb = found.rgb || rgb && found.components == 3
			return found
		}
	}
	return worst
}

// readFrame reads the segment of a frame: precision, height, width, and for each
// component its id and its sampling factors.
func readFrame(segment []byte) (f frame, ok bool) {
	const head, each = 6, 3
	if len(segment) < head || len(segment) < head+each*int(segment[5]) || segment[5] == 0 {
		return f, false
	}
	f = frame{
		height: int(binary.BigEndian.Uint16(segment[1:])), width: int(binary.BigEndian.Uint16(segment[3:])),
		components: int(segment[5]), blocks: make(map[byte]int), across: 1, down: 1,
	}
	ids := make([]byte, f.components)
	for i := range f.components {
		c := segment[head+each*i:]
		h, v := int(c[1]>>4), int(c[1]&15)
		ids[i], f.blocks[c[0]] = c[0], h*v
		f.samples += h * v
		f.across, f.down = max(f.across, h), max(f.down, v)
	}
	if f.components == 1 { // a single component's factors are ignored
		f.samples, f.across, f.down = 1, 1, 1
	}
	f.rgb = string(ids) == "RGB"
	return f, f.samples > 0
}
