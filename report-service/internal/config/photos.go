package config

import (
	"runtime"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/topology"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/clamd"
	"github.com/cityconnect/cityconnect/report-service/internal/photoworker"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Photos say where photos are kept. report-service and photo-worker have the
// same.
type Photos struct {
	// PhotoStore is empty in a city whose reports have no photos; photo-worker
	// is idle there.
	PhotoStore     string `env:"PHOTO_STORE" example:"file:///var/lib/cityconnect/photos"`
	PhotoAccessKey string `env:"PHOTO_S3_ACCESS_KEY"`
	PhotoSecretKey string `env:"PHOTO_S3_SECRET_KEY"`
}

// Blob returns the configuration of the storage.
func (p Photos) Blob() blob.Config {
	return blob.Config{URL: p.PhotoStore, AccessKey: p.PhotoAccessKey, SecretKey: p.PhotoSecretKey}
}

func (p Photos) validate() []config.Fault {
	var faults config.Faults
	faults.Check(p.PhotoStore == "" || blob.ValidURL(p.PhotoStore), "PHOTO_STORE", blob.Example)
	faults.Check((p.PhotoAccessKey == "") == (p.PhotoSecretKey == ""), "PHOTO_S3_SECRET_KEY", "set together with PHOTO_S3_ACCESS_KEY, or not at all")
	return faults
}

// A WorkerAddress is where photo-worker answers how it is.
type WorkerAddress struct {
	Operations string `env:"OPERATIONS_ADDR" envDefault:"127.0.0.1:3015"`
}

// A Worker is the configuration of photo-worker.
type Worker struct {
	WorkerAddress
	config.Service
	ManagementURL string `env:"RABBITMQ_MANAGEMENT_URL" example:"http://user:password@rabbitmq.example.org:15672"`
	Photos
	Moderation string `env:"PHOTO_MODERATION" envDefault:"off"`
	// Guests is that of report-service: where people report without an account, photos of
	// all residents are held.
	Guests config.Switch `env:"GUESTS" envDefault:"off" example:"on"`
	Memory Size          `env:"PHOTO_MEMORY" envDefault:"512MiB"`
	// Timeout is how long a picture may take, of which the largest takes some fifteen
	// seconds. It is the same everywhere but in tests.
	Timeout  time.Duration `envDefault:"1m"`
	ClamdURL string        `env:"CLAMD_URL" example:"tcp://clamd:3310"`
}

const (
	// MaxPixels is what a photo may have: half as much again as telephones make.
	MaxPixels = 50_000_000
	// LargeShare is how much of a processor a large picture takes, so that requests
	// hardly wait for it.
	LargeShare = 0.1
	// reserve is what the worker needs of its memory besides photos.
	reserve = 64 << 20
	// uploadMemory is how much a photo takes while it waits for the memory of
	// its pictures: its upload, and the buffer for reading it before its size
	// is known.
	uploadMemory = 2 * report.MaxPhotoBytes
	// minMemory is enough for one picture of a telephone.
	minMemory = 192 << 20
	// maxPhotoWorkers is above the processors of any machine that would do this.
	maxPhotoWorkers = 64
)

// LoadWorker reads and checks the environment of photo-worker. Its error lists
// all faults by the names of the variables, and shows no secret.
func LoadWorker(getenv func(string) string) (cfg Worker, err error) {
	err = config.Load(&cfg, getenv, cfg.validate)
	return cfg, err
}

// WorkerAddr reads only the address of the health check of photo-worker.
func WorkerAddr(getenv func(string) string) (string, error) {
	var a WorkerAddress
	err := config.Load(&a, getenv, nil)
	return a.Operations, err
}

func (w *Worker) validate() []config.Fault {
	faults := config.Faults(slices.Concat(config.ValidateAddr("OPERATIONS_ADDR", w.Operations), w.Service.Validate(), w.Photos.validate()))
	faults.Check(topology.ValidManagementURL(w.ManagementURL), "RABBITMQ_MANAGEMENT_URL", "a URL such as http://user:password@rabbitmq.example.org:15672")
	faults.Check(w.Moderation == "off" || w.Moderation == "before", "PHOTO_MODERATION", "off or before")
	faults.Check(w.Memory >= minMemory, "PHOTO_MEMORY", "192MiB or more, such as 512MiB")
	if w.ClamdURL != "" {
		_, err := clamd.New(w.ClamdURL)
		faults.Check(err == nil, "CLAMD_URL", clamd.Example)
	}
	return faults
}

// atOnce is how many photos are checked at a time. One processor is
// left to requests, which would wait for pictures otherwise; and the uploads
// that wait for memory take half of it at most.
func (w *Worker) atOnce() int {
	return min(max(1, runtime.GOMAXPROCS(0)-1), maxPhotoWorkers, w.mostWorkers())
}

// Hold reports whether photos of residents wait until an official shows them. Where guests
// report they all do: if those of guests alone did, officials could tell guests.
func (w *Worker) Hold() bool { return w.Moderation == "before" || bool(w.Guests) }

// workers is how many workers there are: two at least, if the memory has room for
// them, so that a large picture never has the only one.
func (w *Worker) workers() int { return max(w.atOnce(), min(2, w.mostWorkers())) }

// Lanes returns how many small and how many large pictures are made at a time. Large
// ones never have all workers.
func (w *Worker) Lanes() photoworker.Lanes {
	return photoworker.Lanes{Small: w.atOnce(), Large: max(1, w.workers()/2)}
}

func (w *Worker) mostWorkers() int { return max(1, (int(w.Memory)/2-reserve)/uploadMemory) }

// Budget is how much memory pictures may take together, in bytes.
func (w *Worker) Budget() int64 { return int64(w.Memory) - reserve - int64(w.workers())*uploadMemory }

// Consumer returns how photos are consumed: one at a time by each worker, so
// that no photo waits behind another while a worker is idle, and with enough
// attempts for ten minutes.
func (w *Worker) Consumer() consumer.Config {
	c := consumer.Defaults()
	c.Workers = w.workers()
	c.Prefetch, c.BatchSize = 1, 1
	c.ApplyTimeout, c.StallAfter = w.Timeout, w.Timeout+photoworker.VerdictTimeout
	c.MaxAttempts = 20
	return c
}
