// Command photos measures uploads: how long a photo of a telephone takes from
// its 202 until its uploader is told live that it is ready, what the worker's
// memory comes to with the largest photos at once, and what all that costs the
// requests of others. It starts both services and the worker on a database each.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

const (
	startTimeout = time.Minute
	readyTimeout = 5 * time.Minute
	// reads is how many requests of others are measured, before and during the
	// large photos at the least.
	reads = 2000
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "photos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	bin := flag.String("bin", "../../bin", "the `folder` of the programs")
	photos := flag.Int("photos", 20, "how many photos of 12 megapixels are uploaded, one after another")
	large := flag.Int("large", 16, "how many photos of 50 megapixels are uploaded at once")
	memory := flag.Int("memory", 512, "the worker's limit, in MiB")
	flag.Parse()

	c, err := startCity(ctx, *bin, *memory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	phone, err := newPhoto(4000, 3000)
	if err != nil {
		return err
	}
	camera, err := newPhoto(8660, 5773) // 50 megapixels
	if err != nil {
		return err
	}
	fmt.Printf("photos of %d KiB and %d KiB\n", len(phone)>>10, len(camera)>>10)

	ann, err := c.resident("ann")
	if err != nil {
		return err
	}
	defer ann.close()
	began := time.Now()
	var ready []time.Duration
	for range *photos {
		took, err := ann.upload(ctx, phone)
		if err != nil {
			return err
		}
		ready = append(ready, took)
	}
	perSecond := float64(*photos) / time.Since(began).Seconds()

	quiet, err := c.p99(ctx, func(n int) bool { return n < reads })
	if err != nil {
		return err
	}
	uploading, uploadCtx := errgroup.WithContext(ctx)
	for i := range *large {
		uploading.Go(func() error {
			someone, err := c.resident(fmt.Sprintf("camera-%d", i))
			if err != nil {
				return err
			}
			defer someone.close()
			_, err = someone.upload(uploadCtx, camera)
			return err
		})
	}
	done := make(chan error, 1)
	go func() { done <- uploading.Wait() }()
	var uploaded error
	busy, err := c.p99(ctx, func(n int) bool {
		select {
		case uploaded = <-done:
			done <- uploaded
			return n < reads
		default:
			return true
		}
	})
	if err = errors.Join(err, uploaded); err != nil {
		return err
	}
	peak, err := c.workerPeak()
	if err != nil {
		return err
	}
	slices.Sort(ready)
	fmt.Printf("others' requests: p99 %v without uploads, %v with\n", quiet, busy)
	fmt.Printf("ready_p50_s=%.2f peak_mb=%d api_p99_ratio=%.2f photos_per_s=%.2f\n",
		ready[len(ready)/2].Seconds(), peak, busy.Seconds()/quiet.Seconds(), perSecond)
	return nil
}

// newPhoto returns a JPEG file that is about as large as those of cameras are.
func newPhoto(width, height int) ([]byte, error) {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	state := uint32(1)
	for y := range height {
		for x := range width {
			state = state*1664525 + 1013904223
			noise := uint8(state >> 28)
			m.SetRGBA(x, y, color.RGBA{uint8(x*255/width) ^ noise, uint8(y*255/height) ^ noise, uint8(x/64*y/64) ^ noise, 255})
		}
	}
	for quality := 85; ; quality -= 10 {
		var file bytes.Buffer
		if err := jpeg.Encode(&file, m, &jpeg.Options{Quality: quality}); err != nil {
			return nil, err
		}
		if file.Len() <= 12<<20 {
			return file.Bytes(), nil
		}
	}
}

// A city is what runs: both services, the worker, and what they need.
type city struct {
	report, notification string // addresses
	secret               []byte
	worker               *exec.Cmd
	stops                []func() error
}

func startCity(ctx context.Context, bin string, memory int) (c *city, err error) {
	c = &city{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	databases := make(map[migrations.Database]string)
	for _, db := range []migrations.Database{migrations.Report, migrations.Notification} {
		dsn, drop, err := testbed.Database(ctx)
		if err != nil {
			return c, err
		}
		c.stops = append(c.stops, drop)
		if err := migrations.Up(ctx, dsn, db); err != nil {
			return c, err
		}
		databases[db] = dsn
	}
	broker, drop, err := testbed.Vhost()
	if err != nil {
		return c, err
	}
	c.stops = append(c.stops, drop)
	dir, err := os.MkdirTemp("", "bench-photos")
	if err != nil {
		return c, err
	}
	c.stops = append(c.stops, func() error { return os.RemoveAll(dir) })
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	c.secret = []byte(hex.EncodeToString(key))
	common := append(os.Environ(), "RABBITMQ_URL="+broker, "RECIPIENT_KEY=k1:"+base64.StdEncoding.EncodeToString(key),
		"REPORTS_PER_USER=off", "LOG_LEVEL=error", "PHOTO_STORE=file://"+dir, fmt.Sprintf("PHOTO_MEMORY=%dMiB", memory),
		"AUTH_MODE=jwt", "AUTH_ISSUER=bench", "AUTH_AUDIENCE=bench", "AUTH_JWT_SECRET="+string(c.secret))
	for _, program := range []struct {
		name     string
		database migrations.Database
		addr     *string
	}{
		{"notification-service", migrations.Notification, &c.notification}, {"photo-worker", migrations.Report, nil},
		{"report-service", migrations.Report, &c.report},
	} {
		cmd, addr, err := startProgram(ctx, filepath.Join(bin, program.name), append(common, "DATABASE_URL="+databases[program.database]), program.addr == nil)
		if err != nil {
			return c, err
		}
		c.stops = append(c.stops, func() error {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
			return nil
		})
		if program.addr == nil {
			c.worker = cmd
		} else {
			*program.addr = addr
		}
	}
	return c, nil
}

// startProgram starts a program and returns once it is ready.
func startProgram(ctx context.Context, path string, env []string, isWorker bool) (*exec.Cmd, string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, "", err
	}
	cmd := exec.Command(path)
	cmd.Stderr = os.Stderr
	cmd.Env = append(env, "HTTP_ADDR="+addr, "OPERATIONS_ADDR=127.0.0.1:0")
	if isWorker {
		cmd.Env = append(env, "OPERATIONS_ADDR="+addr)
	}
	if err := cmd.Start(); err != nil {
		return nil, "", fmt.Errorf("start %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
		if err != nil {
			return cmd, "", err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return cmd, addr, nil
			}
		}
		select {
		case <-ctx.Done():
			return cmd, "", fmt.Errorf("%s does not get ready", path)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *city) stop() (err error) {
	for _, stop := range slices.Backward(c.stops) {
		err = errors.Join(err, stop())
	}
	return err
}

// workerPeak returns the most memory that the worker has had, in MB.
func (c *city) workerPeak() (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.worker.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(status), "VmHWM:")
	if !found {
		return 0, errors.New("the system does not tell the worker's peak of memory")
	}
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	return kib * 1024 / 1_000_000, err
}

// p99 reads the list of reports while more, and returns the 99th percentile.
func (c *city) p99(ctx context.Context, more func(n int) bool) (time.Duration, error) {
	var all []time.Duration
	for more(len(all)) {
		began := time.Now()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.report+"/reports?limit=20", http.NoBody)
		if err != nil {
			return 0, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		_, err = bufio.NewReader(resp.Body).Discard(1 << 30) // io.EOF at its end
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("list reports: status %d, %w", resp.StatusCode, err)
		}
		all = append(all, time.Since(began))
		time.Sleep(2 * time.Millisecond) // about 400 a second: others' requests, and no load of their own
	}
	slices.Sort(all)
	return all[len(all)*99/100], nil
}

// A resident has a token and an open stream.
type resident struct {
	city   *city
	token  string
	stream *http.Response
	ready  chan uuid.UUID // photos
}

func (c *city) resident(name string) (*resident, error) {
	now := time.Now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "bench", "aud": "bench", "sub": name, "name": name, "role": "resident", "jti": uuid.NewString(),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}).SignedString(c.secret)
	if err != nil {
		return nil, err
	}
	r := &resident{city: c, token: token, ready: make(chan uuid.UUID, 100)}
	req, err := http.NewRequest(http.MethodGet, "http://"+c.notification+"/notifications/stream", http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if r.stream, err = http.DefaultClient.Do(req); err != nil { //nolint:bodyclose // close does
		return nil, err
	}
	go r.listen()
	return r, nil
}

// listen notes what the stream tells until it is closed.
func (r *resident) listen() {
	lines := bufio.NewScanner(r.stream.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		var told struct {
			Type    string    `json:"type"`
			PhotoID uuid.UUID `json:"photo_id"`
		}
		if ok && json.Unmarshal([]byte(data), &told) == nil && strings.HasPrefix(told.Type, "report.photo.") {
			r.ready <- told.PhotoID
		}
	}
	close(r.ready)
}

func (r *resident) close() { _ = r.stream.Body.Close() }

// upload files a report with a photo, and returns how long after the 202 its
// stream told that the photo is ready.
func (r *resident) upload(ctx context.Context, photo []byte) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var filed struct {
		ID uuid.UUID `json:"id"`
	}
	const body = `{"title":"Dark lamp","description":"","category_id":2,"address":"","privacy_level":"anonymous"}`
	if err := r.send(ctx, http.MethodPost, "/reports", "application/json", []byte(body), http.StatusCreated, &filed); err != nil {
		return 0, err
	}
	id := uuid.New()
	if err := r.send(ctx, http.MethodPut, fmt.Sprintf("/reports/%s/photos/%s", filed.ID, id), "image/jpeg", photo, http.StatusAccepted, nil); err != nil {
		return 0, err
	}
	accepted := time.Now()
	for {
		select {
		case told, ok := <-r.ready:
			if !ok {
				return 0, errors.New("the stream ended")
			}
			if told == id {
				return time.Since(accepted), nil
			}
		case <-ctx.Done():
			return 0, errors.New("the photo does not get ready")
		}
	}
}

func (r *resident) send(ctx context.Context, method, path, contentType string, body []byte, want int, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.city.report+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		return fmt.Errorf("%s %s: status %d, want %d", method, path, resp.StatusCode, want)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
