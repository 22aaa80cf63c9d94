package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"image"
	"image/jpeg"
	"os"
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const oddWidth, oddHeight = 60, 40

// oddPNG returns a PNG of 60 by 40 pixels: chunks before the data, the data as change leaves
// them, and the end.
func oddPNG(interlace byte, before []byte, change func(pixels []byte) (data []byte), end []byte) []byte {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, oddWidth), oddHeight)
	header = append(header, 8, 2, 0, 0, interlace)
	var compressed bytes.Buffer
	z := zlib.NewWriter(&compressed)
	pixels := make([]byte, rawSize(header))
	for i := range pixels {
		pixels[i] = byte(i % 5) // a filter that there is, wherever a line begins
	}
	_, _ = z.Write(pixels)
	_, _ = z.Write(change(nil))
	_ = z.Close()
	file := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", header)...)
	data := compressed.Bytes()
	if changed := change(data); changed != nil {
		data = changed
	}
	// Two chunks, with nothing between.
	return bytes.Join([][]byte{file, before, chunk("IDAT", data[:5]), chunk("IDAT", data[5:]), end}, nil)
}

// oriented6 is EXIF data of a picture that was taken with the camera turned.
const oriented6 = "II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00"

// Files that viewers show are pictures here, and upright as viewers show them.
func TestOddFiles(t *testing.T) { //nolint:funlen // most of it is the table
	t.Parallel()
	var good bytes.Buffer
	if err := jpeg.Encode(&good, image.NewRGBA(image.Rect(0, 0, oddWidth, oddHeight)), nil); err != nil {
		t.Fatal(err)
	}
	lossy, err := os.ReadFile("testdata/lossy.webp") // 800 by 600
	if err != nil {
		t.Fatal(err)
	}
	withApp1 := func(blocks ...string) []byte {
		file := bytes.Clone(good.Bytes()[:2])
		for _, b := range blocks {
			file = append(binary.BigEndian.AppendUint16(append(file, 0xFF, markerApp1), uint16(len(b)+2)), b...) //nolint:gosec // short
		}
		return append(file, good.Bytes()[2:]...)
	}
	webpWith := func(exif string) []byte {
		head := append([]byte("VP8X\x0a\x00\x00\x00\x08\x00\x00\x00"), 799&0xFF, 799>>8, 0, 599&0xFF, 599>>8, 0)
		rest := append(append([]byte("WEBP"), head...), lossy[webpHead:]...)
		rest = append(binary.LittleEndian.AppendUint32(append(rest, "EXIF"...), uint32(len(exif))), exif...) //nolint:gosec // short
		return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(rest))), rest...)          //nolint:gosec // short
	}
	as := func([]byte) []byte { return nil }
	surplus := func(n int) func([]byte) []byte {
		return func(data []byte) []byte {
			if data == nil {
				return make([]byte, n)
			}
			return data
		}
	}
	end := []byte(endPNG)
	plain := oddPNG(0, nil, as, end)
	for name, tt := range map[string]struct {
		file   []byte
		turned bool
		like   []byte             // the file without what is odd
		reason report.PhotoReason // of the refusal
	}{
		"PNG":                                 {file: oddPNG(0, nil, as, end)},
		"interlaced PNG":                      {file: oddPNG(1, nil, as, end)},
		"PNG with some bytes too many":        {file: oddPNG(0, nil, surplus(7), end), like: plain},
		"PNG with lines too many":             {file: oddPNG(0, nil, surplus(100_000), end), like: plain},
		"interlaced PNG with lines too many":  {file: oddPNG(1, nil, surplus(100_000), end), like: oddPNG(1, nil, as, end)},
		"PNG with a wrong checksum of pixels": {file: oddPNG(0, nil, func(d []byte) []byte { return flipLast(d) }, end), like: plain},
		"PNG with bytes behind its pixels":    {file: oddPNG(0, nil, func(d []byte) []byte { return append(bytes.Clone(d), "padding"...) }, end)},
		"PNG with a wrong checksum at its end": {
			file: oddPNG(0, nil, as, flipLast(end)),
		},
		"PNG cut off in its end":             {file: oddPNG(0, nil, as, end[:6])},
		"PNG without an end":                 {file: oddPNG(0, nil, as, nil)},
		"PNG with something in its end":      {file: oddPNG(0, nil, as, chunk("IEND", []byte("abc")))},
		"PNG with something behind its end":  {file: oddPNG(0, nil, as, append(bytes.Clone(end), "hello"...))},
		"PNG with its transparency too late": {file: oddPNG(0, nil, as, append(chunk("tRNS", make([]byte, 6)), end...))},
		"PNG with EXIF":                      {file: oddPNG(0, chunk("eXIf", []byte(oriented6)), as, end), turned: true},
		"PNG with EXIF as in JPEG":           {file: oddPNG(0, chunk("eXIf", []byte("Exif\x00\x00"+oriented6)), as, end), turned: true},
		"PNG with wrong checksum in its pixels": {
			file: oddPNG(0, nil, as, append(flipLast(chunk("IDAT", nil)), end...)), reason: report.PhotoDamaged,
		},

		"JPEG with a sampling of colours that only few write": {
			file: bytes.Replace(good.Bytes(), []byte{0x01, 0x22, 0x00, 0x02, 0x11, 0x01}, []byte{0x01, 0x22, 0x00, 0x02, 0x21, 0x01}, 1), reason: report.PhotoUnsupported,
		},
		"JPEG":                                   {file: good.Bytes()},
		"JPEG with EXIF":                         {file: withApp1("Exif\x00\x00" + oriented6), turned: true},
		"JPEG with EXIF behind XMP":              {file: withApp1("http://ns.adobe.com/xap/1.0/\x00<x/>", "Exif\x00\x00"+oriented6), turned: true},
		"JPEG with EXIF behind an empty block":   {file: withApp1("Exif\x00\x00", "Exif\x00\x00"+oriented6), turned: true},
		"JPEG with EXIF behind a broken block":   {file: withApp1("Exif\x00\x00II*\x00\xff\xff\xff\xff", "Exif\x00\x00"+oriented6), turned: true},
		"JPEG with EXIF that begins with filler": {file: withApp1("Exif\x00\xff" + oriented6), turned: true},
		"JPEG with half a block of EXIF":         {file: withApp1("Exif\x00\x00" + oriented6[:12])},

		"WebP with EXIF":             {file: webpWith(oriented6), turned: true},
		"WebP with EXIF as in JPEG":  {file: webpWith("Exif\x00\x00" + oriented6), turned: true},
		"WebP with nothing as EXIF":  {file: webpWith("")},
		"WebP with a name as EXIF":   {file: webpWith("Exif\x00\x00")},
		"WebP with half EXIF's head": {file: webpWith("Ex")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := NewMaker(50_000_000, 512<<20, 1).Make(t.Context(), tt.file)
			if tt.reason != "" {
				if refused, ok := errors.AsType[*Refusal](err); !ok || refused.Reason != tt.reason {
					t.Errorf("error %v, want it refused as %s", err, tt.reason)
				}
				return
			}
			if err != nil || made.Height > made.Width != tt.turned {
				t.Errorf("%d × %d, error %v; want it turned: %t", made.Width, made.Height, err, tt.turned)
			}
			if !tt.turned && tt.like != nil {
				like, err := NewMaker(50_000_000, 512<<20, 1).Make(t.Context(), tt.like)
				if err != nil || !bytes.Equal(made.Files[Sizes[0]], like.Files[Sizes[0]]) {
					t.Errorf("it is another picture (%v)", err)
				}
			}
		})
	}
}

// flipLast returns data with another last byte, or nothing for nothing.
func flipLast(data []byte) []byte {
	if data == nil {
		return nil
	}
	data = bytes.Clone(data)
	data[len(data)-1] ^= 1
	return data
}
