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
	return io.MultiReader(bytes.NewReader(upload), bytes.NewReader(flat(upload, scans[0])), bytes.NewReader(end), bytes.NewReader(end))
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

// flat returns the coded form of the last fiftieth of a baseline picture, as blocks
// that are like the one before each: of every component the codes for no change of the
// mean, and for nothing else in the block.
func flat(file []byte, scan int) []byte {
	codes, ids, sampling, units := tablesOf(file[:scan])
	if scan+5 > len(file) || units == 0 {
		return nil
	}
	var bits []byte // one a byte
	selectors := file[scan+5:]
	for i := range min(int(file[scan+4]), len(selectors)/2) {
		id, tables := selectors[2*i], selectors[2*i+1]
		blocks := sampling[bytes.IndexByte(ids, id)+1]
		if file[scan+4] == 1 { // a single component is not interleaved
			blocks = 1
		}
		for range blocks {
			bits = append(append(bits, codes[tables>>4]...), codes[0x10|tables&15]...)
		}
	}
	if len(bits) == 0 {
		return nil
	}
	// Units differ in length, and a code that the end cut in two may take some of them
	// with it.
	missing := units/50 + 8
	var coded []byte
	next, n := byte(0), 0
	for range missing {
		for _, bit := range bits {
			if next, n = next<<1|bit, n+1; n == 8 {
				if coded = append(coded, next); next == 0xFF {
					coded = append(coded, 0)
				}
				next, n = 0, 0
			}
		}
	}
	return coded
}

// tablesOf reads what is before the first scan of a baseline JPEG: the code of symbol
// 0 in each Huffman table, by the table's class and number; the components' ids; how
// many blocks each has in a unit, behind a 0 for unknown ones; and the number of units.
func tablesOf(header []byte) (codes map[byte][]byte, ids []byte, blocks []int, units int) {
	codes, blocks = make(map[byte][]byte), []int{0}
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
			zeroCodes(segment, codes)
		case markerSOF0, markerSOF1:
			if len(segment) < 6 || len(segment) < 6+3*int(segment[5]) {
				break
			}
			across, down := 1, 1
			for c := range int(segment[5]) {
				h, v := int(segment[7+3*c]>>4), int(segment[7+3*c]&15)
				ids, blocks = append(ids, segment[6+3*c]), append(blocks, h*v)
				across, down = max(across, h), max(down, v)
			}
			if segment[5] == 1 {
				across, down = 1, 1
			}
			height, width := int(binary.BigEndian.Uint16(segment[1:])), int(binary.BigEndian.Uint16(segment[3:]))
			units = ((width + 8*across - 1) / (8 * across)) * ((height + 8*down - 1) / (8 * down))
		}
		i += 2 + length
	}
	return codes, ids, blocks, units
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
