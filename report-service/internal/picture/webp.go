package picture

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
)

// Lengths and flags of WebP files (RFC 9649, section 2).
const (
	webpHead  = 12 // "RIFF", the size of the rest, "WEBP"
	chunkHead = 8  // a chunk's name and the size of its content
	frameHead = 16 // a frame's place, width and height less one, duration, flags

	flagAnimation = 1 << 1 // in the first byte of a chunk VP8X
	flagAlpha     = 1 << 4
)

// firstPicture returns a WebP file as it is, or, if it is an animation, as a
// file with only its first picture: package webp does not support animations,
// and finds no picture in them.
func firstPicture(upload []byte) io.Reader {
	flags := webpHead + chunkHead
	if len(upload) <= flags || string(upload[webpHead:][:4]) != "VP8X" || upload[flags]&flagAnimation == 0 {
		return whole(upload)
	}
	for rest := upload[webpHead:]; len(rest) >= chunkHead; {
		name, size := string(rest[:4]), int(binary.LittleEndian.Uint32(rest[4:]))
		rest = rest[chunkHead:]
		if size > len(rest) {
			break
		}
		content := rest[:size]
		if name != "ANMF" || size < frameHead {
			rest = rest[min(size+size&1, len(rest)):] // padded to an even size
			continue
		}
		frame := content[frameHead:]
		extended := make([]byte, 4, 10) // flags, and three bytes that are reserved
		if bytes.HasPrefix(frame, []byte("ALPH")) {
			extended[0] = flagAlpha
		}
		extended = append(extended, content[6:12]...) // width and height
		uint32Of := func(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
		head := slices.Concat(
			[]byte("RIFF"), uint32Of(len("WEBP")+chunkHead+len(extended)+len(frame)), []byte("WEBP"),
			[]byte("VP8X"), uint32Of(len(extended)), extended)
		return io.MultiReader(bytes.NewReader(head), bytes.NewReader(frame))
	}
	return whole(upload) // the decoder refuses it
}
