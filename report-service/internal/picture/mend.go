package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/png"
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
	for s := range segments(file) {
		switch s.marker {
		case markerSOS:
			begins = append(begins, s.at)
		case markerEOI:
			return begins, true
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
		blocks := t.blocks[id] // none of an unknown one
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
	blocks   map[byte]int    // of each component in a unit
	units    int
	interval int // of restart markers, in units; 0 for none
}

// tablesOf reads what is before the first scan.
func tablesOf(header []byte) tables {
	t := tables{codes: make(map[byte][]byte)}
	for s := range segments(header) {
		switch s.marker {
		case markerDHT:
			zeroCodes(s.content, t.codes)
		case markerDRI:
			if len(s.content) == 2 {
				t.interval = int(binary.BigEndian.Uint16(s.content))
			}
		case markerSOF0, markerSOF1:
			if f, ok := readFrame(s.content); ok {
				t.blocks = f.blocks
				t.units = ((f.width + 8*f.across - 1) / (8 * f.across)) * ((f.height + 8*f.down - 1) / (8 * f.down))
			}
		}
	}
	return t
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
	parts, pixels := []io.Reader{bytes.NewReader(upload[:head])}, false
	for rest := upload[head:]; ; {
		if len(rest) < head+4 || string(rest[4:head]) == "IEND" { // cut off, or with something in it
			parts = append(parts, bytes.NewReader([]byte(endPNG)))
			break
		}
		if int64(binary.BigEndian.Uint32(rest)) > int64(len(rest)-head-4) {
			parts = append(parts, bytes.NewReader(rest)) // the decoder says what is wrong
			break
		}
		size := int(binary.BigEndian.Uint32(rest)) + head
		name := string(rest[4:head])
		switch {
		case name == "tRNS" && pixels: // out of place, and ignored
		case name == "tRNS": // which colours are transparent
			sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(rest[4:size]))
			parts = append(parts, bytes.NewReader(rest[:size]), bytes.NewReader(sum))
		case name[0]&0x20 == 0: // critical
			pixels = pixels || name == "IDAT"
			parts = append(parts, bytes.NewReader(rest[:size+4]))
		}
		rest = rest[size+4:]
	}
	return io.MultiReader(parts...)
}

// endPNG is the last chunk of a PNG file.
const endPNG = "\x00\x00\x00\x00IEND\xaeB`\x82"

// decodePNG decodes a PNG file. One that has more pixels than its header says, or a wrong
// checksum behind them, is read again without what is too much, as viewers do.
func decodePNG(r io.Reader) (image.Image, error) {
	again, ok := r.(pacedReader)
	decoded, err := png.Decode(r)
	surplus := errors.Is(err, png.FormatError("too much pixel data")) || errors.Is(err, png.FormatError("zlib: invalid checksum"))
	if !ok || !surplus {
		return decoded, err
	}
	again.Reader = pixelsOnly(again.upload)
	return png.Decode(again)
}

// pixelsOnly returns a PNG file whose data are the pixels that its header says, not
// compressed. It holds some of them at a time.
func pixelsOnly(upload []byte) io.Reader {
	const head = 8
	var before, data []io.Reader
	before = append(before, bytes.NewReader(upload[:head]))
	var pixels int64
	for rest := upload[head:]; len(rest) >= head+4; {
		size := int64(binary.BigEndian.Uint32(rest))
		name, content := string(rest[4:head]), rest[head:min(head+size, int64(len(rest)))]
		switch {
		case name == "IDAT":
			data = append(data, bytes.NewReader(content))
		case name == "IHDR" && len(content) >= 13:
			pixels = rawSize(content)
			before = append(before, bytes.NewReader(rest[:head+size+4]))
		case name == "PLTE" || name == "tRNS" && data == nil:
			before = append(before, bytes.NewReader(chunk(name, content)))
		}
		rest = rest[min(head+size+4, int64(len(rest))):]
	}
	inflated, err := zlib.NewReader(io.MultiReader(data...))
	if err != nil {
		return bytes.NewReader(nil) // it was read before
	}
	stored := &storedReader{pixels: io.LimitReader(inflated, pixels)}
	stored.to, _ = zlib.NewWriterLevel(&stored.data, zlib.NoCompression) // which is a level
	return io.MultiReader(append(before, stored)...)
}

// rawSize returns how many bytes the pixels take that the header of a PNG file promises,
// with a byte before each line (ISO/IEC 15948, 7.2 and 8.2).
func rawSize(header []byte) (bytes int64) {
	width, height := int64(binary.BigEndian.Uint32(header)), int64(binary.BigEndian.Uint32(header[4:]))
	bits := int64(header[8]) * map[byte]int64{2: 3, 4: 2, 6: 4}[header[9]]
	if bits == 0 {
		bits = int64(header[8])
	}
	passes := [][4]int64{{0, 0, 1, 1}} // where each begins, and its steps
	if header[12] == 1 {
		passes = [][4]int64{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
	}
	for _, p := range passes {
		if w, h := (width-p[0]+p[2]-1)/p[2], (height-p[1]+p[3]-1)/p[3]; w > 0 && h > 0 {
			bytes += h * (1 + (w*bits+7)/8)
		}
	}
	return bytes
}

// chunk returns a chunk of a PNG file.
func chunk(name string, content []byte) []byte {
	c := binary.BigEndian.AppendUint32(nil, uint32(len(content))) //nolint:gosec // an upload is small
	c = append(append(c, name...), content...)
	return binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c[4:]))
}

// A storedReader reads pixels as the chunks of a PNG file, not compressed.
type storedReader struct {
	pixels  io.Reader
	to      *zlib.Writer // to data
	data    bytes.Buffer // of the next chunk
	ended   bool
	pending []byte
}

// Read reads what is pending, or another chunk.
func (r *storedReader) Read(b []byte) (int, error) {
	if len(r.pending) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		r.next()
	}
	n := copy(b, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

func (r *storedReader) next() {
	if _, err := io.CopyN(r.to, r.pixels, 1<<15); err != nil {
		r.ended = true
		_ = r.to.Close() // writing to a buffer never fails
	}
	r.pending = chunk("IDAT", r.data.Bytes())
	r.data.Reset()
	if r.ended {
		r.pending = append(r.pending, endPNG...)
	}
}
