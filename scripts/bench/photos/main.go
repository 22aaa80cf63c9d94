// Command photos measures uploads: how long a photo of a telephone takes from its
// 202 until its uploader is told live that it is ready, how many of them are made in
// a second, what the worker's memory comes to with the largest photos at once, and
// what those cost the requests of others: in rounds of one pass without uploads and
// one with. It starts both services and the worker on a database each, and asks
// report-service itself, not the gateway.
//
// The photos are made before anything is measured. The large ones come as fast as
// this machine copies, and all of them end at the same moment: the worst case.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
	"github.com/cityconnect/cityconnect/scripts/internal/client"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

const (
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

var (
	bin    = flag.String("bin", "../../bin", "the `folder` of the programs")
	photos = flag.Int("photos", 20, "how many photos of 12 megapixels are uploaded, one after another and then at once")
	large  = flag.Int("large", 16, "how many photos of 50 megapixels are uploaded at once")
	rounds = flag.Int("rounds", 3, "how often others' requests are measured, with large photos and without")
	memory = flag.Int("memory", 512, "the worker's limit, in MiB")
)

func main() { testbed.Main(run) }

func run(ctx context.Context, b *testbed.Bed) error {
	c, err := startServices(ctx, b)
	if err != nil {
		return err
	}
	phone, err := newPhoto(4000, 3000)
	if err != nil {
		return err
	}
	camera, err := newPhoto(8660, 5773) // 50 megapixels
	if err != nil {
		return err
	}
	fmt.Printf("photos of %d KiB and %d KiB\n", len(phone)>>10, len(camera)>>10)
	if _, err := c.uploadAll(ctx, 1, phone); err != nil { // until all is connected
		return err
	}
	var ready []float64
	for range *photos {
		took, err := c.uploadAll(ctx, 1, phone)
		if err != nil {
			return err
		}
		ready = append(ready, took[0].Seconds())
	}
	began := time.Now()
	if _, err := c.uploadAll(ctx, *photos, phone); err != nil {
		return err
	}
	perSecond := float64(*photos) / time.Since(began).Seconds()

	var p99 [2][]float64 // of others' requests: without uploads, and with
	for round, side := range testbed.Turns(*rounds, 2) {
		took, err := c.others(ctx, func() error {
			if side == 1 {
				_, err := c.uploadAll(ctx, *large, camera)
				return err
			}
			return city.Sleep(ctx, plainPass)
		})
		if err != nil {
			return err
		}
		p99[side] = append(p99[side], stats.Percentile(took, 99))
		fmt.Printf("round %d, %s: p99 of others' requests %.1f ms\n", round+1, []string{"without uploads", "with uploads"}[side], stats.Percentile(took, 99))
	}
	var figures testbed.Figures
	figures.Add("ready_p50_s", 2, stats.Median(ready))
	figures.Add("peak_mb", 0, float64(proc.Memory(c.worker, "VmHWM"))/1e6)
	figures.AddRatio("api_p99_ratio", p99[1], p99[0])
	figures.Add("photos_per_s", 2, perSecond)
	figures.Print()
	return nil
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

// People use what runs: both services and the worker.
type people struct {
	issuer                testbed.Issuer
	reports, notification *client.Client
	worker                int // its process
}

func startServices(ctx context.Context, b *testbed.Bed) (*people, error) {
	c := &people{issuer: testbed.NewIssuer()}
	broker, _, err := b.Vhost()
	if err != nil {
		return nil, err
	}
	dir, err := b.Dir()
	if err != nil {
		return nil, err
	}
	common := append(c.issuer.Environment(), "RABBITMQ_URL="+broker, "PHOTO_STORE=file://"+dir, fmt.Sprintf("PHOTO_MEMORY=%dMiB", *memory))
	databases := make(map[migrations.Database]string)
	for _, db := range []migrations.Database{migrations.Report, migrations.Notification} {
		if databases[db], err = b.Database(ctx, db); err != nil {
			return nil, err
		}
	}
	for _, program := range []struct {
		name, listens string
		database      migrations.Database
		started       func(*testbed.Process)
	}{
		{"notification-service", "HTTP_ADDR", migrations.Notification, func(p *testbed.Process) { c.notification = client.New("http://" + p.Addr) }},
		{"photo-worker", "OPERATIONS_ADDR", migrations.Report, func(p *testbed.Process) { c.worker = p.Cmd.Process.Pid; giveWay(c.worker) }},
		{"report-service", "HTTP_ADDR", migrations.Report, func(p *testbed.Process) { c.reports = client.New("http://" + p.Addr) }},
	} {
		process, err := testbed.Start(ctx, func(addr string) *exec.Cmd {
			cmd := exec.Command(filepath.Join(*bin, program.name))
			// Each is a session of its own: Linux shares the processors out among
			// them, as it does among containers and units of systemd.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			cmd.Env = append(common[:len(common):len(common)], "DATABASE_URL="+databases[program.database], program.listens+"="+addr)
			return cmd
		}, testbed.Serves)
		if err != nil {
			return nil, err
		}
		b.Defer(func() error { process.Stop(); return nil })
		program.started(process)
	}
	return c, nil
}

// giveWay puts a session behind all others, where the system shares the processors
// out among sessions (sched(7), autogroup), and a process where it does not.
func giveWay(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(background)), 0)
	_ = syscall.Setpriority(syscall.PRIO_PGRP, pid, background)
}

// others sends others' requests while work runs: one in ten files a report, the
// rest read the list. It returns how many milliseconds each took from the time at
// which it was due: one that was sent late has waited, too.
func (c *people) others(ctx context.Context, work func() error) ([]float64, error) {
	token, err := c.issuer.Token("others", "resident")
	if err != nil {
		return nil, err
	}
	user := c.reports.As("others", token)
	done := make(chan error, 1)
	go func() { done <- work() }()
	var mu sync.Mutex
	var took []float64
	requests, requestCtx := errgroup.WithContext(ctx)
	for n, due := 0, time.Now(); ; n, due = n+1, due.Add(interval) {
		select {
		case err := <-done:
			return took, errors.Join(err, requests.Wait())
		case <-time.After(time.Until(due)):
		}
		requests.Go(func() (err error) {
			if n%10 == 0 {
				_, err = user.CreateReport(requestCtx, filing)
			} else {
				err = user.Do(requestCtx, http.MethodGet, "/reports?limit=20", nil, nil)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, float64(time.Since(due).Microseconds())/1000)
			return err
		})
	}
}

// filing is a report that somebody files.
var filing = client.NewReport{Title: "Dark lamp", CategoryID: 2, PrivacyLevel: "anonymous"}

// uploadAll has n residents, who watch their streams, upload a photo each at once.
// It returns how long each took from its 202 until its stream told that it is ready.
func (c *people) uploadAll(ctx context.Context, n int, photo []byte) (took []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	screens := city.NewScreens()
	defer func() { err = errors.Join(err, screens.Close()) }()
	took = make([]time.Duration, n)
	uploading, ctx := errgroup.WithContext(ctx)
	for i := range n {
		id := uuid.NewString()
		token, err := c.issuer.Token(id, "resident")
		if err != nil {
			return nil, err
		}
		judged := make(chan client.Notification, 1)
		uploading.Go(func() (err error) {
			if _, err = screens.Open(ctx, c.notification.As(id, token), func(n client.Notification) { judged <- n }); err != nil {
				return err
			}
			took[i], err = upload(ctx, c.reports.As(id, token), photo, judged)
			return err
		})
	}
	return took, uploading.Wait()
}

// upload files a report with a photo, and returns how long its verdict took.
func upload(ctx context.Context, resident *client.Client, photo []byte, judged <-chan client.Notification) (time.Duration, error) {
	report, err := resident.CreateReport(ctx, filing)
	if err != nil {
		return 0, err
	}
	if _, err := resident.AddPhoto(ctx, report.ID, uuid.New(), "", photo); err != nil {
		return 0, err
	}
	accepted := time.Now()
	select {
	case n := <-judged: // of this report, whose reporter has no other
		if n.Type != string(event.PhotoReadyKey) {
			return 0, fmt.Errorf("the photo became %s", n.Type)
		}
		return time.Since(accepted), nil
	case <-ctx.Done():
		return 0, errors.New("the photo does not get ready")
	}
}
