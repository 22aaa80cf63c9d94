package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Cameras that run out of power, cards and telephones write files whose last bytes are
// missing, and programs write PNG files whose remarks have wrong checksums. Every
// program shows them, so pictures are made of them as well.

// mendJPEG returns a JPEG file with an end. Where the last hundredth of a picture is
// missing, it goes on in the colour of what is before; where a progressive one ends
// early in a later scan, which only refines it, that scan is left out. The decoder
// refuses a file that ends earlier.
func mendJPEG(upload []byte) io.Reader {
	scans, ended := scansOf(upload)
	if ended || len(scans) == 0 {
		return whole(upload)
	}
	for upload[len(upload)-1] == 0xFF { // half of a marker
		upload = upload[:len(upload)-1]
	}
	end := []byte{0xFF, markerEOI}
	if f := frameOf(upload); f.progressive {
		if len(scans) > refining {
			return io.MultiReader(bytes.NewReader(upload[:scans[len(scans)-1]]), bytes.NewReader(end))
		}
		return io.MultiReader(bytes.NewReader(upload), bytes.NewReader(end))
	}
	mended, added := flat(upload, scans[0])
	return io.MultiReader(bytes.NewReader(mended), bytes.NewReader(added), bytes.NewReader(end), bytes.NewReader(end))
}

// refining is how many scans of a progressive JPEG have to be whole: programs write
// about ten, of which the later ones only refine the picture.
const refining = 5

// scansOf returns where the scans of a JPEG file begin, and whether it has an end
// marker behind them.
func scansOf(file []byte) (begins []int, ended bool) {
	if !bytes.HasPrefix(file, []byte{0xFF, markerSOI}) {
		return nil, true
	}
	for i := 2; i+2 <= len(file); {
		if file[i] != 0xFF { // of a scan
			next := bytes.IndexByte(file[i:], 0xFF)
			if next < 0 {
				break
			}
			i += next
			continue
		}
		switch marker := file[i+1]; {
		case marker == markerEOI:
			return begins, true
		case marker == 0xFF: // a fill byte
			i++
		case marker == 0 || marker == markerTEM || marker >= markerRST0 && marker <= markerSOI:
			i += 2
		case i+4 > len(file):
			return begins, false
		default:
			if marker == markerSOS {
				begins = append(begins, i)
			}
			i += 2 + int(binary.BigEndian.Uint16(file[i+2:]))
		}
	}
	return begins, false
}

const (
	// maxComponents is how many components a scan can have.
	maxComponents = 4
	// maxFlat is far above the bits that are added to a picture of a camera.
	maxFlat = 32 << 20
)

// flat returns the part of a baseline JPEG that is to be kept, and what to add to it:
// the coded form of the last fiftieth of the picture, as blocks that are like the one
// before each: of every component the codes for no change of the mean, and for nothing
// else in the block.
func flat(file []byte, scan int) (kept, added []byte) {
	t := tablesOf(file[:scan])
	if scan+5 > len(file) || t.units == 0 {
		return file, nil
	}
	var unit []byte // one bit a byte
	selectors := file[scan+5:]
	for i := range min(int(file[scan+4]), maxComponents, len(selectors)/2) {
		id, tables := selectors[2*i], selectors[2*i+1]
		blocks := t.blocks[bytes.IndexByte(t.ids, id)+1]
		if file[scan+4] == 1 { // a single component is not interleaved
			blocks = 1
		}
		for range blocks {
			unit = append(append(unit, t.codes[tables>>4]...), t.codes[0x10|tables&15]...)
		}
	}
	// Units differ in length, and a code that the end cut in two may take some of them
	// with it.
	missing := t.units/50 + 8
	if len(unit)*(missing+t.interval) > maxFlat {
		return file, nil
	}
	if t.interval == 0 {
		return file, coded(unit, missing)
	}
	// The part behind the last restart marker is written again: its end is not known.
	begun, last := 0, len(file)
	for i := scan; i+1 < len(file); i++ {
		if file[i] == 0xFF && file[i+1] >= markerRST0 && file[i+1] < markerSOI {
			begun, last = begun+1, i
		}
	}
	left := t.units - begun*t.interval
	if begun == 0 || left > missing+t.interval {
		return file, nil
	}
	for ; left > 0; left -= t.interval {
		added = append(added, 0xFF, markerRST0+byte(begun-1)%8)
		added = append(added, coded(unit, min(left, t.interval))...)
		begun++
	}
	return file[:last], added
}

// coded returns so many units of bits as bytes, as in a scan.
func coded(unit []byte, units int) []byte {
	var out []byte
	next, n := byte(0), 0
	add := func(bit byte) {
		if next, n = next<<1|bit, n+1; n == 8 {
			if out = append(out, next); next == 0xFF {
				out = append(out, 0)
			}
			next, n = 0, 0
		}
	}
	for range units {
		for _, bit := range unit {
			add(bit)
		}
	}
	for n > 0 { // with ones up to a whole byte
		add(1)
	}
	return out
}

// tables are what is before the first scan of a baseline JPEG.
type tables struct {
	codes    map[byte][]byte // of symbol 0 in each Huffman table, by its class and number
	ids      []byte          // of the components
	blocks   []int           // of each component in a unit, behind a 0 for unknown ones
	units    int
	interval int // of restart markers, in units; 0 for none
}

// tablesOf reads what is before the first scan.
func tablesOf(header []byte) tables {
	t := tables{codes: make(map[byte][]byte), blocks: []int{0}}
	for i := 2; i+4 <= len(header); {
		if header[i] != 0xFF || header[i+1] == 0xFF {
			i++
			continue
		}
		length := int(binary.BigEndian.Uint16(header[i+2:]))
		if length < 2 || i+2+length > len(header) {
			break
		}
		segment := header[i+4 : i+2+length]
		switch header[i+1] {
		case markerDHT:
			zeroCodes(segment, t.codes)
		case markerDRI:
			if len(segment) == 2 {
				t.interval = int(binary.BigEndian.Uint16(segment))
			}
		case markerSOF0, markerSOF1:
			t.readFrame(segment)
		}
		i += 2 + length
	}
	return t
}

// readFrame reads the components and the number of units from the segment of a frame.
func (t *tables) readFrame(segment []byte) {
	if len(segment) < 6 || len(segment) < 6+3*int(segment[5]) {
		return
	}
	across, down := 1, 1
	for c := range int(segment[5]) {
		h, v := int(segment[7+3*c]>>4), int(segment[7+3*c]&15)
		t.ids, t.blocks = append(t.ids, segment[6+3*c]), append(t.blocks, h*v)
		across, down = max(across, h), max(down, v)
	}
	if segment[5] == 1 { // a single component's factors are ignored
		across, down = 1, 1
	}
	height, width := int(binary.BigEndian.Uint16(segment[1:])), int(binary.BigEndian.Uint16(segment[3:]))
	t.units = ((width + 8*across - 1) / (8 * across)) * ((height + 8*down - 1) / (8 * down))
}

// zeroCodes adds the code of symbol 0 in each Huffman table of a segment, bit by bit.
func zeroCodes(segment []byte, codes map[byte][]byte) {
	for len(segment) >= 17 {
		table, counts, symbols := segment[0], segment[1:17], segment[17:]
		code, at := 0, 0
		for length, count := range counts {
			for range count {
				if at < len(symbols) && symbols[at] == 0 {
					bits := make([]byte, length+1)
					for b := range bits {
						bits[b] = byte(code >> (length - b) & 1)
					}
					codes[table] = bits
				}
				code, at = code+1, at+1
			}
			code <<= 1
		}
		if at > len(symbols) {
			return
		}
		segment = symbols[at:]
	}
}

// mendPNG returns a PNG file with what its picture is made of, and right checksums of
// what is not the picture itself: remarks, colour profiles and times are left out. An
// end that is missing is added.
func mendPNG(upload []byte) io.Reader {
	const head = 8 // the signature; and the length and the name of each chunk
	if len(upload) < head {
		return whole(upload)
	}
	parts := []io.Reader{bytes.NewReader(upload[:head])}
	for rest := upload[head:]; ; {
		if len(rest) == 0 {
			parts = append(parts, bytes.NewReader([]byte("\x00\x00\x00\x00IEND\xaeB`\x82")))
			break
		}
		if len(rest) < head+4 || int64(binary.BigEndian.Uint32(rest)) > int64(len(rest)-head-4) {
			parts = append(parts, bytes.NewReader(rest)) // the decoder says what is wrong
			break
		}
		size := int(binary.BigEndian.Uint32(rest)) + head
		name := string(rest[4:head])
		switch {
		case name == "tRNS": // which colours are transparent
			sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(rest[4:size]))
			parts = append(parts, bytes.NewReader(rest[:size]), bytes.NewReader(sum))
		case name[0]&0x20 == 0: // critical
			parts = append(parts, bytes.NewReader(rest[:size+4]))
		}
		rest = rest[size+4:]
		if name == "IEND" {
			break
		}
	}
	return io.MultiReader(parts...)
}
