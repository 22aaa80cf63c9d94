package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// startPhotoWorker starts the worker, and returns once its queue is there: what
// is published before finds no queue.
func (c *stack) startPhotoWorker() {
	c.t.Helper()
	c.photo.start()
	c.awaitConsumersOf("queue.photo_checks")
}

// upload sends a photo of a report, and returns its id.
func (c *stack) upload(user *client.Client, report client.Report, file []byte) uuid.UUID {
	c.t.Helper()
	status, body := c.putPhoto(user, report.ID, uuid.New(), file)
	var added struct{ ID uuid.UUID }
	if err := json.Unmarshal(body, &added); err != nil || status != http.StatusAccepted {
		c.t.Fatalf("upload: status %d: %s", status, body)
	}
	return added.ID
}

func (c *stack) putPhoto(user *client.Client, report, upload uuid.UUID, file []byte) (int, []byte) {
	c.t.Helper()
	req := must(http.NewRequestWithContext(c.t.Context(), http.MethodPut, fmt.Sprintf("%s/reports/%s/photos/%s?alt=A+lamp", c.gateway.URL, report, upload), bytes.NewReader(file)))
	req.Header.Set("Authorization", "Bearer "+user.Token())
	req.Header.Set("Content-Type", "image/jpeg") // whatever it is: the service looks itself
	resp := must(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	return resp.StatusCode, must(io.ReadAll(resp.Body))
}

// smallPicture returns a file that becomes a photo.
func smallPicture(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 64, 48))); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// A verdict is what a photo's uploader is answered.
type verdict struct {
	ID            uuid.UUID
	State, Reason string
	Width, Height int
}

// verdictOn waits until a photo is looked at.
func (c *stack) verdictOn(user *client.Client, report client.Report, id uuid.UUID) verdict {
	c.t.Helper()
	var poll backoff.Poll
	for deadline := time.After(eventually.Patience); ; {
		var list struct{ Photos []verdict }
		if err := user.Do(c.t.Context(), http.MethodGet, "/reports/"+report.ID.String()+"/photos", nil, &list); err != nil {
			c.t.Fatal(err)
		}
		i := slices.IndexFunc(list.Photos, func(v verdict) bool { return v.ID == id })
		if i >= 0 && list.Photos[i].State != "checking" {
			return list.Photos[i]
		}
		select {
		case <-poll.Next():
		case <-deadline:
			c.t.Fatalf("no verdict on photo %s", id)
		}
	}
}

// tool runs a program on a file, or skips the test where it is missing.
func tool(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is missing: apt-get install libimage-exiftool-perl imagemagick", name)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, stderr.String())
	}
	return out
}

// Pictures as cameras, editors and people of bad intent make them: each gets a
// clear answer, and no tag of a marked one is in what is served. The tools are
// ImageMagick and exiftool, which know of more than we do.
func TestPhotosOfEveryKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.png")
	writePlain(t, plain)
	convert := func(name string, args ...string) []byte {
		path := filepath.Join(dir, name)
		tool(t, "convert", append(append([]string{plain}, args...), path)...)
		if !strings.HasSuffix(name, ".gif") {
			tool(t, "exiftool", "-q", "-overwrite_original", "-GPSLatitude=6.9", "-GPSLatitudeRef=S", "-GPSLongitude=107.6", "-GPSLongitudeRef=E",
				"-DateTimeOriginal=2026:01:02 03:04:05", "-Model=canary-camera", "-SerialNumber=canary-serial", "-XMP:Creator=canary-creator",
				"-Comment=canary-comment", path)
		}
		return must(os.ReadFile(path))
	}
	whole := convert("whole.jpg")
	sideways := filepath.Join(dir, "sideways.jpg")
	tool(t, "convert", plain, sideways)
	tool(t, "exiftool", "-q", "-n", "-overwrite_original", "-Orientation=6", "-GPSLatitude=6.9", "-Model=canary-camera", sideways)
	animation := func(name string) []byte {
		path := filepath.Join(dir, name)
		tool(t, "convert", "-delay", "10", plain, "-negate", plain, path)
		return must(os.ReadFile(path))
	}

	c := startStack(t)
	c.startPhotoWorker()
	ann := c.userOf("ann", "resident")
	for _, tt := range []struct {
		name          string
		file          []byte
		reason        string // empty when it becomes a photo
		width, height int
	}{
		{"jpeg", whole, "", 900, 600},
		{"progressive jpeg", convert("progressive.jpg", "-interlace", "JPEG"), "", 900, 600},
		{"gray jpeg", convert("gray.jpg", "-colorspace", "Gray"), "", 900, 600},
		{"CMYK jpeg", convert("cmyk.jpg", "-colorspace", "CMYK"), "", 900, 600},
		{"jpeg on its side", must(os.ReadFile(sideways)), "", 600, 900},
		{"16 bit png", convert("deep.png", "-depth", "16"), "", 900, 600},
		{"interlaced png", convert("interlaced.png", "-interlace", "PNG"), "", 900, 600},
		{"gif", animation("animated.gif"), "", 900, 600},
		{"webp", convert("a.webp"), "", 900, 600},
		{"jpeg and zip", append(bytes.Clone(whole), "PK\x03\x04canary"...), "", 900, 600},
		{"truncated jpeg", whole[:len(whole)/2], "damaged", 0, 0},
		{"gif and script", []byte("GIF89a/*canary*/=1;alert(1)"), "too_large", 0, 0}, // its text is its size
		{"script", []byte("<svg onload=alert(1)>"), "unsupported", 0, 0},
		{"tiff", convert("a.tiff"), "unsupported", 0, 0},
	} {
		report, err := ann.CreateReport(t.Context(), draft("A dark lamp"))
		if err != nil {
			t.Fatal(err)
		}
		id := c.upload(ann, report, tt.file)
		got := c.verdictOn(ann, report, id)
		if got.Reason != tt.reason || (got.State == "ready") != (tt.reason == "") || got.Width != tt.width || got.Height != tt.height {
			t.Errorf("%s: %+v, want reason %q, %d × %d", tt.name, got, tt.reason, tt.width, tt.height)
		}
		for _, size := range []string{"2048", "1024", "320"} {
			resp := must(http.Get(c.gateway.URL + "/photos/" + id.String() + "/" + size + ".jpg"))
			body := must(io.ReadAll(resp.Body))
			resp.Body.Close()
			if (resp.StatusCode == http.StatusOK) != (tt.reason == "") {
				t.Errorf("%s: size %s: status %d", tt.name, size, resp.StatusCode)
			}
			if resp.StatusCode == http.StatusOK {
				checkNoTags(t, tt.name, filepath.Join(dir, "made.jpg"), body)
			}
		}
	}
	if code, _ := c.photo.terminate(); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
}

// writePlain writes a picture of 900 × 600 colours, without tags.
func writePlain(t *testing.T, path string) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 900, 600))
	for y := range 600 {
		for x := range 900 {
			m.SetRGBA(x, y, color.RGBA{uint8(x), uint8(y), uint8(x ^ y), 255})
		}
	}
	var file bytes.Buffer
	if err := png.Encode(&file, m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkNoTags fails the test if exiftool finds anything but what it says of every
// file, such as its size.
func checkNoTags(t *testing.T, name, path string, file []byte) {
	t.Helper()
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	var found []map[string]any
	if err := json.Unmarshal(tool(t, "exiftool", "-json", "-a", "-G1", "-u", path), &found); err != nil {
		t.Fatal(err)
	}
	for tag := range found[0] {
		group, _, _ := strings.Cut(tag, ":")
		if !slices.Contains([]string{"SourceFile", "ExifTool", "System", "File", "Composite"}, group) {
			t.Errorf("%s: exiftool finds %s", name, tag)
		}
	}
	if bytes.Contains(file, []byte("canary")) {
		t.Errorf("%s: the canary is left", name)
	}
}
