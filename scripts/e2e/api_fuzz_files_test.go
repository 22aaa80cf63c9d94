package e2e

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// bounceSecret lets the fuzzer hand over bounces.
const bounceSecret = "fuzz-bounce-secret-fuzz-bounce-secret"

// photographers file reports for fuzzed photos. Each may add five to one report.
const photographers = 60

// A photographer is a user with a report.
type photographer struct {
	user   *client.Client
	report client.Report
}

func (c *stack) photographers(t *testing.T) (all []photographer) {
	t.Helper()
	for i := range photographers {
		user := c.userOf(fmt.Sprint("photographer-", i), "resident")
		all = append(all, photographer{user, file(t, user, fmt.Sprint("With photos ", i))})
	}
	return all
}

// uploads returns requests with photos: sound ones, some that promise more than
// they have or more than any memory holds, and others that are not pictures.
func uploads(by []photographer) func(*rand.Rand) fuzzed {
	return func(random *rand.Rand) fuzzed {
		p := pick(random, by)
		r := fuzzed{
			method: http.MethodPut, header: http.Header{},
			path: fmt.Sprintf("/reports/%s/photos/%s?alt=%s", p.report.ID, uuid.UUID(randomBytes(random, 16)), url.QueryEscape(hostileText(random))),
			body: hostilePicture(random),
		}
		r.header.Set("Authorization", "Bearer "+p.user.Token())
		r.header.Set("Content-Type", pick(random, []string{"image/png", "image/jpeg", "image/webp", "image/gif", "image/svg+xml", "image/*", "multipart/form-data; boundary=b"}))
		return r
	}
}

func randomBytes(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// sides are what pictures claim to be wide and high.
var sides = []uint32{0, 1, 2, 48, 1000, 7071, 8192, 65_500, 65_535, 65_536, 1 << 24, 1<<31 - 1, 1 << 31, 1<<32 - 1}

func hostilePicture(random *rand.Rand) []byte {
	width, height := pick(random, sides), pick(random, sides)
	var picture []byte
	switch random.IntN(8) {
	case 0, 1:
		picture = pngOf(random, width, height)
	case 2:
		var file bytes.Buffer
		_ = jpeg.Encode(&file, image.NewGray(image.Rect(0, 0, 64, 48)), nil)
		picture = file.Bytes()
		// The frame's header has precision, height, width and components.
		if at := bytes.Index(picture, []byte{0xff, 0xc0}); at > 0 {
			binary.BigEndian.PutUint16(picture[at+5:], uint16(height))
			binary.BigEndian.PutUint16(picture[at+7:], uint16(width))
			picture[at+4], picture[at+11] = byte(pick(random, []int{8, 12, 0})), byte(pick(random, []int{0x11, 0x44, 0xff, 0}))
		}
	case 3:
		var file bytes.Buffer
		frame := image.NewPaletted(image.Rect(0, 0, 8, 8), nil)
		all := &gif.GIF{Config: image.Config{Width: int(uint16(width)), Height: int(uint16(height))}}
		for range 1 + random.IntN(500) {
			all.Image, all.Delay = append(all.Image, frame), append(all.Delay, 0)
		}
		_ = gif.EncodeAll(&file, all)
		picture = file.Bytes()
	case 4: // WebP with a canvas
		picture = []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00")
		picture = append(picture, byte(width), byte(width>>8), byte(width>>16), byte(height), byte(height>>8), byte(height>>16))
		picture = append(picture, "VP8L\x08\x00\x00\x00\x2f\xff\xff\xff\x0f\x00\x00\x00"...)
	case 5: // a form, as a browser would send it
		picture = []byte("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n" +
			string(pngOf(random, 48, 48)) + pick(random, []string{"\r\n--b--\r\n", "\r\n--b", "", strings.Repeat("\r\n--b\r\n\r\n", 5000)}))
	case 6:
		picture = []byte(pick(random, []string{"", "x", "<svg xmlns='http://www.w3.org/2000/svg' width='99999999' height='99999999'/>", "%PDF-1.7", "\xff\xd8\xff", "GIF89a", "BM"}))
	case 7:
		var file bytes.Buffer
		_ = png.Encode(&file, image.NewGray(image.Rect(0, 0, 64, 48)))
		picture = file.Bytes() // a sound one
	}
	if random.IntN(6) == 0 && len(picture) > 0 {
		picture[random.IntN(len(picture))] ^= byte(1 + random.IntN(255))
	}
	if random.IntN(6) == 0 {
		picture = picture[:random.IntN(len(picture)+1)]
	}
	return picture
}

// pngOf returns a file that claims to be so large, with a text and with pixels that
// unpack to far more than the file has.
func pngOf(random *rand.Rand, width, height uint32) []byte {
	file := bytes.NewBufferString("\x89PNG\r\n\x1a\n")
	chunk := func(name string, data []byte) {
		_ = binary.Write(file, binary.BigEndian, uint32(len(data)))
		body := append([]byte(name), data...)
		file.Write(body)
		_ = binary.Write(file, binary.BigEndian, crc32.ChecksumIEEE(body))
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	depth := pick(random, [][2]byte{{8, 0}, {8, 2}, {16, 6}, {1, 0}, {8, 3}, {7, 9}})
	chunk("IHDR", append(header, depth[0], depth[1], 0, 0, byte(random.IntN(3))))
	var zeros bytes.Buffer
	packer := zlib.NewWriter(&zeros)
	_, _ = packer.Write(make([]byte, pick(random, []int{0, 100, 1 << 16, 1 << 22})))
	_ = packer.Close()
	if random.IntN(2) == 0 {
		chunk("iCCP", append([]byte("p\x00\x00"), zeros.Bytes()...))
		chunk("zTXt", append([]byte("Comment\x00\x00"), zeros.Bytes()...))
	}
	chunk("IDAT", zeros.Bytes())
	chunk("IEND", nil)
	return file.Bytes()
}

// awaitVerdicts returns how many of the fuzzed photos became one, once each has its
// verdict. The worker gives up none.
func (c *stack) awaitVerdicts() (ready int) {
	c.t.Helper()
	count := func(sql string) (n int) {
		if err := c.reportDB.QueryRow(c.t.Context(), sql).Scan(&n); err != nil {
			c.t.Fatalf("%s: %v", sql, err)
		}
		return n
	}
	eventually.True(c.t, "each photo has its verdict", func() bool { return count(`select count(*) from photos where state = 'checking'`) == 0 })
	if dead := count(`select count(*) from dead_letters`); dead > 0 {
		c.t.Errorf("%d photos were given up by photo-worker", dead)
	}
	return count(`select count(*) from photos where state = 'ready'`)
}

// letters returns requests of mail servers and of links in mails, which no document
// describes.
func letters(random *rand.Rand) fuzzed {
	r := fuzzed{method: http.MethodPost, header: http.Header{}, path: "/mail/bounces"}
	switch random.IntN(4) {
	case 0:
		r.method = pick(random, []string{"GET", "POST", "HEAD"})
		r.path = "/u/" + url.PathEscape(pick(random, []string{hostileText(random), strings.Repeat("A", 43), strings.Repeat("x", 6000)}))
		r.header.Set("Accept", pick(random, []string{"text/html", "*/*", ""}))
		if r.method == "POST" {
			form := pick(random, []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "multipart/form-data", "multipart/form-data; boundary=" + strings.Repeat("b", 300)})
			r.header.Set("Content-Type", form)
			r.body = []byte(pick(random, []string{
				"List-Unsubscribe=One-Click", "List-Unsubscribe=", "a=%zz", strings.Repeat("a=b&", 15_000), strings.Repeat("a", 70_000), "\x00",
				"--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--\r\n",
				strings.Repeat("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n", 1200), "--b\r\n" + strings.Repeat("X: y\r\n", 10_000),
			}))
		}
		return r
	default:
		r.header.Set("X-Mail-Secret", pick(random, []string{bounceSecret, bounceSecret, bounceSecret, "wrong", ""}))
		r.header.Set("Content-Type", pick(random, []string{"message/rfc822", "message/rfc822", "text/plain", ""}))
		r.body = hostileMail(random)
	}
	return r
}

// hostileMail returns a bounce, or what looks like one.
func hostileMail(random *rand.Rand) []byte {
	report := "Reporting-MTA: dns; mx.test\r\n\r\nFinal-Recipient: rfc822;a@b.test\r\nAction: failed\r\nStatus: 5.1.1\r\n"
	to := pick(random, []string{"b+" + strings.Repeat("A", 22) + "@bounces.city.test", "x@bounces.city.test", hostileText(random)})
	boundary := pick(random, []string{"b", strings.Repeat("b", 70), strings.Repeat("b", 5000), "", " ", `"b"`, "--"})
	head := "From: <>\r\nTo: " + to + "\r\nSubject: " + hostileText(random) + "\r\nMIME-Version: 1.0\r\n"
	mixed := "Content-Type: multipart/report; report-type=delivery-status; boundary=" + boundary + "\r\n\r\n"
	part := func(kind, body string) string {
		return "--" + boundary + "\r\nContent-Type: " + kind + "\r\n\r\n" + body + "\r\n"
	}
	var text string
	switch random.IntN(8) {
	case 0, 1:
		text = head + mixed + part("text/plain", "Sorry") + part("message/delivery-status", report) + "--" + boundary + "--\r\n"
	case 2: // thousands of parts
		text = head + mixed + strings.Repeat(part("message/delivery-status", "Status: 4.0.0\r\n"), 700)
	case 3: // parts in parts
		text = head + strings.Repeat("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n", 1100)
	case 4:
		text = head + strings.Repeat("X-Header: "+strings.Repeat("y", 100)+"\r\n ", 500) + "\r\n\r\n"
	case 5:
		text = head + mixed + part("message/delivery-status", strings.Repeat("Final-Recipient: rfc822;a@b.test\r\nStatus: 5.1.1\r\n\r\n", 1100))
	case 6:
		text = head + "Content-Transfer-Encoding: base64\r\n" + mixed + strings.Repeat("=", 60_000)
	case 7:
		text = strings.Repeat(pick(random, []string{"\r\n", "a", ":", "\x00", "é", "--b\r\n"}), 10_000)
	}
	if random.IntN(5) == 0 {
		text = text[:random.IntN(len(text)+1)]
	}
	return []byte(text)
}

// pages returns requests of browsers.
func pages(random *rand.Rand) fuzzed {
	r := fuzzed{method: pick(random, []string{"GET", "GET", "GET", "HEAD"}), header: http.Header{}}
	r.path = pick(random, []string{"/", "/index.html", "/sw.js", "/manifest.webmanifest", "/reports/" + uuid.NewString(), "/assets/", "/assets/../", "/ops/audit", "/" + url.PathEscape(hostileText(random))})
	if random.IntN(2) == 0 {
		r.path += "?" + strings.Repeat(pick(random, []string{"a=1&", "q=%F0%9F%98%80&", "%00=&", "a[]=1&", ";"}), 1+random.IntN(4000))
	}
	r.header.Set("Accept", pick(random, []string{"text/html", "text/html,*/*;q=0.1", "image/avif"}))
	if random.IntN(2) == 0 {
		r.header.Set(pick(random, []string{"Range", "If-None-Match", "If-Modified-Since", "Accept-Encoding", "Cookie", "Accept-Language"}), headerText(random))
	}
	return r
}
