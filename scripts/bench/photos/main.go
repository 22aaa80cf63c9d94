// Command photos measures uploads: how long a photo of a telephone takes from
// its 202 until its uploader's stream says that it is ready, how many of them are
// made in a second, what the worker's memory comes to with the largest photos at
// once, and what those cost the requests of others: in rounds of one pass without
// uploads, one with, and one beside a loop that does nothing but take a processor,
// which is what no worker can do better than. It starts both services and the
// worker on a database each, and asks report-service itself, not the gateway.
//
// The photos are made before anything is measured. Those of the rounds come twice:
// over lines such as the fastest telephones have, sixteen of which are as much as
// a city's own line takes, and in a burst, as fast as this machine copies. Sending
// them costs this program processor time that nobody's telephone takes from the
// services; what it is, and what the services take, each round prints. All sixteen
// end at the same moment, because their lines are alike: the worst case.
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
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

const (
	startTimeout = time.Minute
	readyTimeout = 5 * time.Minute
	// interval is the time between two requests of others: less than what the
	// machine can do by far, and enough of them in a pass for a 99th percentile.
	interval = 10 * time.Millisecond
	// plainPass is how long others' requests are measured without uploads: long
	// enough for what the database and the collectors of garbage do now and then.
	plainPass = time.Minute
	// background is the niceness of what gives way to all others: a tenth of their
	// weight, as the worker's container has it of cpu_shares.
	background = 10
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
	photos := flag.Int("photos", 20, "how many photos of 12 megapixels are uploaded, one after another and then at once")
	large := flag.Int("large", 16, "how many photos of 50 megapixels are uploaded at once")
	rounds := flag.Int("rounds", 3, "how often others' requests are measured, with large photos and without")
	bursts := flag.Int("bursts", 2, "how often the same is measured with photos that come in a burst")
	speed := flag.Int("line", 60, "how fast the line of each resident is, in Mbit/s: of sixteen together as fast as a city's")
	memory := flag.Int("memory", 512, "the worker's limit, in MiB")
	flag.Parse()

	c, err := startCity(ctx, *bin, *memory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	c.bytesPerSecond = float64(*speed) * 1e6 / 8
	phone, err := newPhoto(4000, 3000)
	if err != nil {
		return err
	}
	camera, err := newPhoto(8660, 5773) // 50 megapixels
	if err != nil {
		return err
	}
	fmt.Printf("photos of %d KiB and %d KiB, over lines of %d Mbit/s but for the bursts\n", len(phone)>>10, len(camera)>>10, *speed)
	first, err := c.residents("first", 1)
	if err != nil {
		return err
	}
	defer closeAll(first)
	if _, err := uploadAll(ctx, first, phone); err != nil { // until all is connected
		return err
	}

	var ready []time.Duration
	for i := range *photos {
		r, err := c.resident(fmt.Sprint("phone-", i))
		if err != nil {
			return err
		}
		_, took, err := r.upload(ctx, phone)
		r.close()
		if err != nil {
			return err
		}
		ready = append(ready, took)
	}
	atOnce, err := c.residents("at-once", *photos)
	if err != nil {
		return err
	}
	defer closeAll(atOnce)
	began := time.Now()
	if _, err := uploadAll(ctx, atOnce, phone); err != nil {
		return err
	}
	perSecond := float64(*photos) / time.Since(began).Seconds()

	others, err := c.rounds(ctx, fmt.Sprintf("%d-mbit", *speed), *rounds, *large, camera)
	if err != nil {
		return err
	}
	c.bytesPerSecond = math.Inf(1)
	burst, err := c.rounds(ctx, "burst", *bursts, *large, camera)
	if err != nil {
		return err
	}
	peak, err := c.workerPeak()
	if err != nil {
		return err
	}
	fmt.Printf("ready: %.2f s at best, %.2f s at worst; the worker's memory: %d MB of %d\n",
		slices.Min(ready).Seconds(), slices.Max(ready).Seconds(), peak, *memory<<20/1_000_000)
	fmt.Printf("p99 of others' requests, times that without uploads: %.2f beside a loop on one processor, %.2f with a burst\n",
		stats.MedianRatio(others.loop, others.plain), stats.MedianRatio(burst.uploads, burst.plain))
	fmt.Printf("ready_p50_s=%.2f peak_mb=%d api_p99_ratio=%.2f photos_per_s=%.2f\n",
		stats.Median(ready).Seconds(), peak, stats.MedianRatio(others.uploads, others.plain), perSecond)
	return nil
}

// latencies are the 99th percentiles of others' requests in each round, in
// milliseconds: without uploads, beside a loop, and with uploads.
type latencies struct{ plain, loop, uploads []float64 }

// rounds measures others' requests in so many rounds, with so many large photos at
// once in each. How says how the photos come.
func (c *city) rounds(ctx context.Context, how string, n, large int, photo []byte) (l latencies, err error) {
	withoutUploads := func(int) error {
		all, err := c.measure(ctx, func() error { return pause(ctx, plainPass) })
		l.plain = append(l.plain, p99(all))
		return err
	}
	besideLoop := func(int) error {
		stop, err := startLoop()
		if err != nil {
			return err
		}
		defer stop()
		all, err := c.measure(ctx, func() error { return pause(ctx, plainPass) })
		l.loop = append(l.loop, p99(all))
		return err
	}
	withUploads := func(round int) error {
		residents, err := c.residents(fmt.Sprint(how, "-", round), large)
		if err != nil {
			return err
		}
		var accepted time.Time
		before := c.processorTime()
		all, err := c.measure(ctx, func() (err error) {
			accepted, err = uploadAll(ctx, residents, photo)
			return err
		})
		closeAll(residents)
		if err != nil {
			return err
		}
		l.uploads = append(l.uploads, p99(all))
		arriving := sort.Search(len(all), func(i int) bool { return all[i].due.After(accepted) })
		fmt.Printf("%s, round %d: bodies arrived for %.1f s: %s\n%s, round %d: after that: %s\n", how, round,
			accepted.Sub(all[0].due).Seconds(), sum(all[:arriving]), how, round, sum(all[arriving:]))
		for i, after := range c.processorTime() {
			fmt.Printf("%s, round %d: %.1f s of processors in %s\n", how, round, after-before[i], c.programs[i].name)
		}
		return nil
	}
	for round := 1; round <= n; round++ {
		passes := []func(int) error{withoutUploads, besideLoop, withUploads}
		if round%2 == 0 { // what a pass leaves behind, the other ones meet as often
			slices.Reverse(passes)
		}
		for _, pass := range passes {
			if err := pass(round); err != nil {
				return l, err
			}
		}
		fmt.Printf("%s, round %d: p99 %.1f ms without uploads, %.1f ms beside a loop, %.1f ms with uploads\n", how, round,
			l.plain[round-1], l.loop[round-1], l.uploads[round-1])
	}
	return l, nil
}

// startLoop has a process take a processor until it is stopped, with the worker's
// weight.
func startLoop() (stop func(), err error) {
	loop := exec.Command("sh", "-c", "while :; do :; done")
	loop.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := loop.Start(); err != nil {
		return nil, fmt.Errorf("start a loop: %w", err)
	}
	giveWay(loop.Process.Pid)
	return func() {
		_ = loop.Process.Kill()
		_ = loop.Wait()
	}, nil
}

// giveWay puts a session behind all others, where the system shares the processors
// out among sessions (sched(7), autogroup), and a process where it does not.
func giveWay(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(background)), 0)
	_ = syscall.Setpriority(syscall.PRIO_PGRP, pid, background)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// uploadAll has residents upload a photo each at once. It returns when the last of
// them was accepted, once all are ready.
func uploadAll(ctx context.Context, residents []*resident, photo []byte) (accepted time.Time, err error) {
	times := make([]time.Time, len(residents))
	uploading, ctx := errgroup.WithContext(ctx)
	for i, r := range residents {
		uploading.Go(func() (err error) {
			times[i], _, err = r.upload(ctx, photo)
			return err
		})
	}
	err = uploading.Wait()
	return slices.MaxFunc(times, time.Time.Compare), err
}

// newPhoto returns a JPEG file that is about as large as those of cameras are.
func newPhoto(width, height int) ([]byte, error) {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	state := uint32(1)
	for y := range height {
		for x := range width {
			state = state*1664525 + 1013904223
			noise := uint8(state >> 26)
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
	others               string // the token of whoever sends the other requests
	client               *http.Client
	bytesPerSecond       float64 // of each resident's line
	worker               *exec.Cmd
	programs             []program // this one, and those that it started
	stops                []func() error
}

// A program is a process whose processor time is counted.
type program struct {
	name string
	pid  int
}

// processorTime returns how much each program has had of the processors, in
// seconds; nothing where the system does not tell.
func (c *city) processorTime() []float64 {
	const ticks = 100 // a second, on every Linux
	times := make([]float64, len(c.programs))
	for i, p := range c.programs {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) > 12 { // proc_pid_stat(5): from the third on
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			times[i] = float64(user+system) / ticks
		}
	}
	return times
}

func startCity(ctx context.Context, bin string, memory int) (c *city, err error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100 // nobody waits for a new connection
	c = &city{client: &http.Client{Transport: transport}, programs: []program{{"this program", os.Getpid()}}}
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
	if c.others, err = c.token("others"); err != nil {
		return c, err
	}
	common := append(os.Environ(), "RABBITMQ_URL="+broker, "RECIPIENT_KEY=k1:"+base64.StdEncoding.EncodeToString(key),
		"REPORTS_PER_USER=off", "LOG_LEVEL=error", "PHOTO_STORE=file://"+dir, fmt.Sprintf("PHOTO_MEMORY=%dMiB", memory),
		"AUTH_MODE=jwt", "AUTH_ISSUER=bench", "AUTH_AUDIENCE=bench", "AUTH_JWT_SECRET="+string(c.secret))
	for _, p := range []struct {
		name     string
		database migrations.Database
		addr     *string
	}{
		{"notification-service", migrations.Notification, &c.notification}, {"photo-worker", migrations.Report, nil},
		{"report-service", migrations.Report, &c.report},
	} {
		cmd, addr, err := startProgram(ctx, filepath.Join(bin, p.name), append(common, "DATABASE_URL="+databases[p.database]), p.addr == nil)
		if err != nil {
			return c, err
		}
		c.stops = append(c.stops, func() error {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
			return nil
		})
		c.programs = append(c.programs, program{p.name, cmd.Process.Pid})
		if p.addr == nil {
			c.worker = cmd
			giveWay(cmd.Process.Pid)
		} else {
			*p.addr = addr
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
	// Each is a session of its own: Linux shares the processors out among them, as
	// it does among containers and units of systemd.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
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

// A latency is that of a request that was due at a time, from that time on: one
// that was sent late, because others were not answered, has waited, too.
type latency struct {
	due   time.Time
	took  time.Duration
	write bool // it filed a report
}

// measure sends others' requests while work runs, and returns their latencies in
// the order in which they were due.
func (c *city) measure(ctx context.Context, work func() error) ([]latency, error) {
	done := make(chan error, 1)
	go func() { done <- work() }()
	var mu sync.Mutex
	var all []latency
	requests, requestCtx := errgroup.WithContext(ctx)
	for n, due := 0, time.Now(); ; n, due = n+1, due.Add(interval) {
		select {
		case err := <-done:
			err = errors.Join(err, requests.Wait())
			slices.SortFunc(all, func(a, b latency) int { return a.due.Compare(b.due) })
			return all, err
		case <-time.After(time.Until(due)):
		}
		requests.Go(func() error {
			if err := c.ask(requestCtx, n); err != nil {
				return err
			}
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, latency{due, took, isWrite(n)})
			return nil
		})
	}
}

// isWrite reports whether the nth request of others files a report: one in ten
// does, and the others read the list.
func isWrite(n int) bool { return n%10 == 0 }

// ask makes the nth request of others.
func (c *city) ask(ctx context.Context, n int) error {
	if isWrite(n) {
		return c.send(ctx, c.others, http.MethodPost, "/reports", "application/json", []byte(filing), http.StatusCreated, nil)
	}
	return c.send(ctx, c.others, http.MethodGet, "/reports?limit=20", "", nil, http.StatusOK, nil)
}

// sum says how long some requests took: those whose answer waits until the
// database's log is on the disk, and those whose answer does not.
func sum(all []latency) string {
	var writes, reads []latency
	for _, l := range all {
		if l.write {
			writes = append(writes, l)
		} else {
			reads = append(reads, l)
		}
	}
	return fmt.Sprintf("p99 %.1f ms of %d reports filed and %.1f ms of %d lists read", p99(writes), len(writes), p99(reads), len(reads))
}

// p99 returns the 99th percentile of some latencies, in milliseconds.
func p99(all []latency) float64 {
	var took []float64
	for _, l := range all {
		took = append(took, float64(l.took)/float64(time.Millisecond))
	}
	return stats.Percentile(took, 99)
}

// filing is a report that somebody files.
const filing = `{"title":"Dark lamp","description":"","category_id":2,"address":"","privacy_level":"anonymous"}`

// A resident has a token and an open stream.
type resident struct {
	city   *city
	token  string
	stream *http.Response
	judged chan judged
}

// A judged photo is ready, or not to be shown.
type judged struct {
	Type    string    `json:"type"`
	PhotoID uuid.UUID `json:"photo_id"`
	Reason  string    `json:"reason"`
}

// token signs in a resident.
func (c *city) token(name string) (string, error) {
	now := time.Now()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "bench", "aud": "bench", "sub": name, "name": name, "role": "resident", "jti": uuid.NewString(),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}).SignedString(c.secret)
}

func (c *city) resident(name string) (*resident, error) {
	token, err := c.token(name)
	if err != nil {
		return nil, err
	}
	r := &resident{city: c, token: token, judged: make(chan judged, 100)}
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
		var told judged
		if ok && json.Unmarshal([]byte(data), &told) == nil && strings.HasPrefix(told.Type, "report.photo.") {
			r.judged <- told
		}
	}
	close(r.judged)
}

// residents returns so many of them.
func (c *city) residents(who string, n int) ([]*resident, error) {
	residents := make([]*resident, n)
	for i := range residents {
		var err error
		if residents[i], err = c.resident(fmt.Sprint(who, "-", i)); err != nil {
			closeAll(residents[:i])
			return nil, err
		}
	}
	return residents, nil
}

func closeAll(residents []*resident) {
	for _, r := range residents {
		r.close()
	}
}

func (r *resident) close() { _ = r.stream.Body.Close() }

// upload files a report with a photo, and returns when it was accepted, and how
// long after that its stream told that it is ready.
func (r *resident) upload(ctx context.Context, photo []byte) (accepted time.Time, ready time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var filed struct {
		ID uuid.UUID `json:"id"`
	}
	if err := r.city.send(ctx, r.token, http.MethodPost, "/reports", "application/json", []byte(filing), http.StatusCreated, &filed); err != nil {
		return accepted, 0, err
	}
	var added struct {
		ID uuid.UUID `json:"id"`
	}
	if err := r.city.send(ctx, r.token, http.MethodPut, fmt.Sprintf("/reports/%s/photos/%s", filed.ID, uuid.New()), "image/jpeg", photo, http.StatusAccepted, &added); err != nil {
		return accepted, 0, err
	}
	accepted = time.Now()
	for {
		select {
		case told, ok := <-r.judged:
			switch {
			case !ok:
				return accepted, 0, errors.New("the stream ended")
			case told.PhotoID != added.ID:
			case told.Type != "report.photo.ready":
				return accepted, 0, fmt.Errorf("the photo was refused: %s", told.Reason)
			default:
				return accepted, time.Since(accepted), nil
			}
		case <-ctx.Done():
			return accepted, 0, errors.New("the photo does not get ready")
		}
	}
}

// A line passes on no more bytes a second than that of a resident does.
type line struct {
	r              io.Reader
	bytesPerSecond float64
	began          time.Time
	sent           int
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	l.sent += n
	time.Sleep(time.Until(l.began.Add(time.Duration(float64(l.sent) / l.bytesPerSecond * float64(time.Second)))))
	return n, err
}

func (c *city) send(ctx context.Context, token, method, path, contentType string, body []byte, want int, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.report+path, &line{bytes.NewReader(body), c.bytesPerSecond, time.Now(), 0})
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(body))
	if len(body) == 0 {
		req.Body = http.NoBody
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		return fmt.Errorf("%s %s: status %d, want %d", method, path, resp.StatusCode, want)
	}
	if answer == nil {
		_, err := io.Copy(io.Discard, resp.Body) // its connection is used again
		return err
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
