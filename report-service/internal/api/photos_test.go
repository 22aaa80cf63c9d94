package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// withFiles keeps photos in a folder of the test's own, which it returns.
func withFiles(t testing.TB) (dir string, set func(*parts)) {
	t.Helper()
	dir = t.TempDir()
	files, err := blob.Open(blob.Config{URL: "file://" + dir})
	if err != nil {
		t.Fatal(err)
	}
	return dir, func(p *parts) { p.Files = files }
}

// uploads returns what is in the quarantine of a folder.
func uploads(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*", "*-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// photoPath returns the path of a photo, or of an upload under an id of the client's.
func photoPath(reportID, id uuid.UUID) string {
	return fmt.Sprintf("/reports/%s/photos/%s", reportID, id)
}

func put(path, token, body string, headers ...string) call {
	c := call{method: "PUT", path: path, token: token, body: body, headers: map[string]string{"Content-Type": "image/jpeg"}}
	for i := 0; i < len(headers); i += 2 {
		c.headers[headers[i]] = headers[i+1]
	}
	return c
}

func TestPutPhoto(t *testing.T) {
	t.Parallel()
	dir, set := withFiles(t)
	s := newServer(t, set)
	ann, ben, ola := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident), token(t, "ola", auth.Official)
	filed := s.file(ann, "anonymous").ID
	path := photoPath(filed, uuid.New())
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	}
	for _, tt := range []struct {
		name   string
		call   call
		status int
		kind   string
	}{
		{"first", put(path+"?alt=A+dark+lamp", ann, "picture", "Content-Digest", "md5=:x:, "+digest("picture")), 202, ""},
		{"again", put(path, ann, "picture"), 200, ""},
		{"again, by its digest and before it is read", put(path, ann, "not looked at", "Content-Digest", digest("picture")), 200, ""},
		{"other bytes by their digest", put(path, ann, "another", "Content-Digest", digest("another")), 409, "other-photo"},
		{"other bytes", put(path, ann, "another"), 409, "other-photo"},
		{"by an official", put(photoPath(filed, uuid.New()), ola, "picture"), 202, ""},
		{"by somebody else", put(photoPath(filed, uuid.New()), ben, "picture"), 403, "not-reporter"},
		{"by nobody", put(photoPath(filed, uuid.New()), "", "picture"), 401, "unauthenticated"},
		{"of no report", put(photoPath(uuid.New(), uuid.New()), ann, "picture"), 404, "not-found"},
		{"without an id", put("/reports/"+filed.String()+"/photos/1", ann, "picture"), 400, "invalid-input"},
		{"empty", put(photoPath(filed, uuid.New()), ann, ""), 400, "malformed-body"},
		{"no picture's type", put(photoPath(filed, uuid.New()), ann, "x", "Content-Type", "text/html"), 415, "unsupported-media-type"},
		{"compressed", put(photoPath(filed, uuid.New()), ann, "x", "Content-Encoding", "gzip"), 415, "unsupported-media-type"},
		{"altered on the way", put(photoPath(filed, uuid.New()), ann, "altered", "Content-Digest", digest("picture")), 400, "invalid-input"},
		{"with a digest that is none", put(photoPath(filed, uuid.New()), ann, "x", "Content-Digest", "sha-256=:x:"), 400, "invalid-input"},
		{"with a long text", put(photoPath(filed, uuid.New())+"?alt="+strings.Repeat("a", 301), ann, "x"), 400, "invalid-input"},
		{"too large", put(photoPath(filed, uuid.New()), ann, strings.Repeat("x", report.MaxPhotoBytes+1)), 413, "body-too-large"},
	} {
		a := s.do(tt.call)
		if a.StatusCode != tt.status || !strings.Contains(string(a.body), tt.kind) {
			t.Errorf("%s: status %d, want %d with %q: %s", tt.name, a.StatusCode, tt.status, tt.kind, a.body)
		}
	}
	if got := uploads(t, dir); len(got) != 2 {
		t.Errorf("%d files are kept, want 2: what is refused is deleted: %q", len(got), got)
	}
	list, _ := ok[reportapi.PhotoList](s, call{method: "GET", path: "/reports/" + filed.String() + "/photos", token: ann}, 200)
	if len(list.Photos) != 2 || list.Photos[0].Alt != "A dark lamp" || list.Photos[0].Official || !list.Photos[1].Official {
		t.Errorf("photos %+v", list.Photos)
	}
	list, _ = ok[reportapi.PhotoList](s, call{method: "GET", path: "/reports/" + filed.String() + "/photos", token: ben}, 200)
	if len(list.Photos) != 0 {
		t.Errorf("another resident sees %+v", list.Photos)
	}
	if strings.Contains(s.logs.String(), "dark+lamp") || strings.Contains(s.logs.String(), "A dark lamp") {
		t.Error("the log has the text of a photo")
	}
}

// An upload that breaks off leaves nothing, and arrives when it is sent again.
// Repeated uploads count, too: their bytes are read to be compared.
func TestBytesOfAUser(t *testing.T) {
	t.Parallel()
	_, set := withFiles(t)
	s := newServer(t, set)
	ann, ben := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident)
	path := photoPath(s.file(ann, "public").ID, uuid.New())
	large := strings.Repeat("x", report.MaxPhotoBytes)
	s.wantStatus(http.StatusAccepted, put(path, ann, large))
	for range 31 {
		s.wantStatus(http.StatusOK, put(path, ann, large))
	}
	s.wantProblem(refusal{call: put(path, ann, large), status: http.StatusTooManyRequests, kind: "too-many-requests"})
	sum := sha256.Sum256([]byte(large))
	s.wantStatus(http.StatusOK, put(path, ann, large, "Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":"))
	s.wantStatus(http.StatusAccepted, put(photoPath(s.file(ben, "public").ID, uuid.New()), ben, large))
}

func TestPutPhotoThatBreaksOff(t *testing.T) {
	t.Parallel()
	dir, set := withFiles(t)
	s := newServer(t, set)
	ann := token(t, "ann", auth.Resident)
	path := photoPath(s.file(ann, "public").ID, uuid.New())
	address, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	for range 20 {
		conn, err := net.Dial("tcp", address.Host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n", path, ann, size)
		if _, err := conn.Write(make([]byte, size*6/10)); err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	whole := strings.Repeat("x", size)
	ok[reportapi.Photo](s, put(path, ann, whole), 202)
	// Those that broke off are deleted when the server notices.
	eventually.True(t, "one upload is left", func() bool { return len(uploads(t, dir)) == 1 })
	if kept, err := os.ReadFile(uploads(t, dir)[0]); err != nil || string(kept) != whole {
		t.Errorf("kept are %d bytes, error %v; want the %d that were sent at last", len(kept), err, size)
	}
}

// failing is a storage that is full or away.
type failing struct {
	blob.Store
	err error
}

func (f failing) Put(_ context.Context, _ string, r io.Reader, _ int64) error {
	_, _ = io.Copy(io.Discard, r)
	return f.err
}
func (f failing) Get(context.Context, string, int64) ([]byte, error) { return nil, f.err }
func (f failing) Delete(context.Context, string) error               { return f.err }

func TestStorageFails(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		fmt.Errorf("write file: %w", blob.ErrFull):  507,
		errors.New("dial tcp s3.internal: refused"): 503,
	} {
		s := newServer(t, func(p *parts) { p.Files = failing{err: err} })
		ann := token(t, "ann", auth.Resident)
		filed := s.file(ann, "public").ID
		a := s.do(put(photoPath(filed, uuid.New()), ann, "picture"))
		if a.StatusCode != want || bytes.Contains(a.body, []byte("internal:")) {
			t.Errorf("status %d, want %d, without the cause: %s", a.StatusCode, want, a.body)
		}
		var photos int
		if err := s.pool.QueryRow(t.Context(), `select (select count(*) from photos) + (select count(*) from outbox_messages where routing_key like '%photo%')`).Scan(&photos); err != nil || photos != 0 {
			t.Errorf("%d rows, error %v; want none", photos, err)
		}
	}
}

// In a city that has set up no storage nobody can send a photo, and no message
// waits for a worker that is not there. All else about reports is as ever.
func TestCityWithoutPhotos(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Files = nil })
	ann, ola := token(t, "ann", auth.Resident), token(t, "ola", auth.Official)
	filed := s.file(ann, "public").ID
	for _, c := range []call{
		put(photoPath(filed, uuid.New()), ann, "picture"),
		{method: "POST", path: photoPath(filed, uuid.New()) + "/redact", token: ola, body: `{"rects": [{"x": 0, "y": 0, "width": 1, "height": 1}]}`},
		{method: "GET", path: "/photos/" + uuid.NewString() + "/320.jpg"},
	} {
		if a := s.do(c); a.StatusCode != http.StatusNotFound || !strings.Contains(string(a.body), "#no-photos") {
			t.Errorf("%s: status %d, want 404, no-photos: %s", c.method, a.StatusCode, a.body)
		}
	}
	var rows int
	err := s.pool.QueryRow(t.Context(), `
		select (select count(*) from photos) + (select count(*) from outbox_messages where routing_key like '%photo%')`).Scan(&rows)
	if err != nil || rows != 0 {
		t.Errorf("%d rows, error %v; want none", rows, err)
	}
	for path, token := range map[string]string{"/reports/" + filed.String() + "/photos": ann, "/reports/queue/photos": ola} {
		if list, _ := ok[reportapi.PhotoList](s, call{method: "GET", path: path, token: token}, 200); len(list.Photos) != 0 {
			t.Errorf("%s: %+v", path, list.Photos)
		}
	}
}

// Pictures are served so that no browser takes one for anything else, and held
// ones to nobody who must not see them.
func TestServedPictures(t *testing.T) {
	t.Parallel()
	dir, set := withFiles(t)
	s := newServer(t, set)
	ann, ben, ola := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident), token(t, "ola", auth.Official)
	filed := s.file(ann, "anonymous").ID
	added, _ := ok[reportapi.Photo](s, put(photoPath(filed, uuid.New()), ann, "picture"), http.StatusAccepted)
	photo := added.ID
	for _, size := range picture.Sizes {
		name := filepath.Join(dir, picture.Key(photo, size))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("made"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	get := func(token string, headers map[string]string) answer {
		return s.do(call{method: "GET", path: "/photos/" + photo.String() + "/1024.jpg", token: token, headers: headers})
	}
	for _, step := range []struct {
		state string
		want  map[string]int // status by who asks
		cache string
	}{
		{"checking", map[string]int{"": 404, ann: 404, ben: 404, ola: 404}, "no-store"},
		{"held", map[string]int{"": 404, ann: 200, ben: 404, ola: 200}, "no-store"},
		{"ready", map[string]int{"": 200, ann: 200, ben: 200, ola: 200}, "public, max-age=31536000, immutable"},
		{"refused", map[string]int{"": 404, ann: 404, ola: 404}, "no-store"},
		{"removed", map[string]int{"": 404, ann: 404, ola: 404}, "no-store"},
	} {
		if _, err := s.pool.Exec(t.Context(), `update photos set state = $1`, step.state); err != nil {
			t.Fatal(err)
		}
		for who, want := range step.want {
			a := get(who, nil)
			if a.StatusCode != want || a.Header.Get("Cache-Control") != step.cache {
				t.Errorf("%s: status %d, %q; want %d, %q", step.state, a.StatusCode, a.Header.Get("Cache-Control"), want, step.cache)
			}
			if want != 200 {
				continue
			}
			for name, value := range map[string]string{
				"Content-Type": "image/jpeg", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'",
			} {
				if got := a.Header.Get(name); got != value {
					t.Errorf("%s: %s is %q, want %q", step.state, name, got, value)
				}
			}
			if string(a.body) != "made" {
				t.Errorf("%s: %q", step.state, a.body)
			}
		}
	}
	if _, err := s.pool.Exec(t.Context(), `update photos set state = 'ready'`); err != nil {
		t.Fatal(err)
	}
	tag := get("", nil).Header.Get("ETag")
	for _, tags := range []string{tag, `"another", W/` + tag} {
		if a := get("", map[string]string{"If-None-Match": tags}); a.StatusCode != http.StatusNotModified || len(a.body) > 0 {
			t.Errorf("with If-None-Match %s: status %d, want 304", tags, a.StatusCode)
		}
	}
	for _, header := range []map[string]string{
		{"If-None-Match": `"another"`}, {"Range": "bytes=1-2"}, {"Range": "bytes=100-"}, {"Range": "pixels"},
	} {
		if a := get("", header); a.StatusCode != 200 || string(a.body) != "made" || a.Header.Get("Content-Length") != "4" {
			t.Errorf("with %v: status %d, %q; want 200 and the whole of it", header, a.StatusCode, a.body)
		}
	}
	for _, name := range []string{"2047.jpg", "1024.png"} {
		if a := s.do(call{method: "GET", path: "/photos/" + photo.String() + "/" + name}); a.StatusCode != 400 && a.StatusCode != 404 {
			t.Errorf("%s: status %d", name, a.StatusCode)
		}
	}
}
