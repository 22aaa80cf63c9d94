// Package photoworker is the effect of the group "photos": it checks uploads,
// makes the pictures that are served, and deletes the uploads.
//
// It promises that each photo ends as ready, held or refused, whatever dies;
// that only pictures are served that it made; and that an outage of the storage
// or of the virus scanner only delays photos.
package photoworker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/topology"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A Scanner finds viruses.
type Scanner interface {
	Infected(ctx context.Context, file []byte) (bool, error)
}

// A Store keeps the states of photos.
type Store interface {
	UploadToCheck(ctx context.Context, photo uuid.UUID) (postgres.Unchecked, error)
	Judge(ctx context.Context, queue string, m consumer.Message, v report.Judgement) (seen, kept bool, err error)
	Leftovers(ctx context.Context, limit int) ([]postgres.Leftover, error)
	Cleaned(ctx context.Context, l postgres.Leftover) error
	UnknownUploads(ctx context.Context, keys []string) ([]string, error)
	UnknownPhotos(ctx context.Context, ids []string) ([]string, error)
	RefuseDead(ctx context.Context, queue string) (refused int, err error)
}

// Dependencies are what a Worker needs.
type Dependencies struct {
	Store   Store
	Files   blob.Store
	Maker   *picture.Maker
	Lanes   Lanes
	Scanner Scanner // nil for none
	Hold    bool    // photos wait for an official
	// Stopping ends when the process is to stop: a picture that takes longer than
	// stopGrace after that is left to another worker. It may be nil.
	Stopping context.Context
	Tell     func(uploader string, p event.PhotoProgress)
	Log      zerolog.Logger
	Metrics  prometheus.Registerer
}

// A Worker checks photos.
type Worker struct {
	Dependencies
	lanes    *lanes
	verdicts *prometheus.CounterVec
	seconds  prometheus.Histogram
	orphans  prometheus.Counter
}

// New returns a Worker.
func New(d Dependencies) *Worker {
	f := promauto.With(d.Metrics)
	return &Worker{
		Dependencies: d, lanes: newLanes(d.Lanes),
		verdicts: f.NewCounterVec(prometheus.CounterOpts{
			Name: "photos_judged_total", Help: "Checked photos, by verdict: made, or the reason of the refusal.",
		}, []string{"verdict"}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "photo_duration_seconds", Help: "Time from fetching an upload to the commit of its verdict.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		orphans: f.NewCounter(prometheus.CounterOpts{
			Name: "photo_orphans_removed_total", Help: "Removed files that belonged to no photo.",
		}),
	}
}

// Group is the group of consumers whose effect w is.
func (w *Worker) Group() consumer.Group {
	return consumer.Group{
		Name:   "photos",
		Queues: []topology.Queue{{Name: event.Topology{}.Queue(event.PhotoUploadedKey), Keys: []event.Key{event.PhotoUploadedKey}}},
		Effect: w,
	}
}

// Read has nothing to prepare before the batch.
func (*Worker) Read(consumer.Message) (any, error) { return nil, nil }

// Apply checks the photos of a batch, which has one, see
// config.Worker.Consumer. The work is done before the transaction of the
// verdict begins, because it takes longer than a transaction may. If it is done
// twice, the second run makes the same files under the same names.
func (w *Worker) Apply(ctx context.Context, queue string, batch []consumer.Message) (seen int, err error) {
	for _, m := range batch {
		again, err := w.check(ctx, queue, m)
		if err != nil {
			return seen, err
		}
		if again {
			seen++
		}
	}
	return seen, nil
}

func (w *Worker) check(ctx context.Context, queue string, m consumer.Message) (seen bool, err error) {
	began := time.Now()
	uploaded := m.Event.(*event.PhotoUploaded)
	unchecked, err := w.Store.UploadToCheck(ctx, uploaded.PhotoID)
	if err != nil {
		return false, err
	}
	var verdict report.Judgement
	if unchecked.Checking {
		tell := func(stage event.PhotoStage) {
			w.Tell(unchecked.Uploader, event.PhotoProgress{ReportID: uploaded.ReportID, PhotoID: uploaded.PhotoID, Stage: stage})
		}
		verdict, err = w.look(ctx, uploaded.PhotoID, unchecked.Key, tell)
		if errors.Is(err, errTooSlow) && failure.Retries(m.Headers)+1 >= maxTooSlow {
			verdict, err = report.Judgement{Reason: report.PhotoFailed}, nil
		}
		if err != nil {
			return false, err
		}
	}
	// The picture may have used up the time that ctx allows.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), VerdictTimeout)
	defer cancel()
	seen, kept, err := w.Store.Judge(ctx, queue, m, verdict)
	if err != nil || seen || !unchecked.Checking {
		return seen, err
	}
	// After a crash here, the upkeep deletes the files.
	if err := w.clean(ctx, postgres.Leftover{Photo: uploaded.PhotoID, Upload: unchecked.Key, Pictures: !kept}); err != nil {
		w.Log.Warn().Err(err).Msg("deleting an upload failed, upkeep will retry")
	}
	w.verdicts.WithLabelValues(cmp.Or(string(verdict.Reason), "made")).Inc()
	w.seconds.Observe(time.Since(began).Seconds())
	return seen, nil
}

// VerdictTimeout bounds what is done once the verdict on a photo is known.
const VerdictTimeout = 10 * time.Second

// maxTooSlow is how many attempts at a photo may take too long. Once is an accident of
// the machine; the third time the picture is the cause, and it holds up other large ones.
const maxTooSlow = 3

// errTooSlow says that the work on a picture took longer than it may. That spends an
// attempt, and says nothing about the database.
var errTooSlow = &failure.Error{Class: failure.Transient, Text: "the picture was not made in time"}

// look returns the verdict on an upload, and stores the pictures. An error
// means that a dependency is unavailable, or that it is not the turn of a large
// picture, and says nothing about the photo. It calls tell at each stage.
func (w *Worker) look(ctx context.Context, photo uuid.UUID, key string, tell func(event.PhotoStage)) (report.Judgement, error) {
	if err := w.lanes.tryAgain(photo); err != nil {
		return report.Judgement{}, err
	}
	upload, err := w.Files.Get(ctx, key, report.MaxPhotoBytes)
	if errors.Is(err, blob.ErrNotFound) { // database and storage were restored from different times
		return report.Judgement{Reason: report.PhotoFailed}, nil
	}
	if err != nil {
		return report.Judgement{}, w.away(ctx, "the storage", err)
	}
	leave, err := w.lanes.enter(ctx, photo, w.Maker.IsLarge(upload))
	if err != nil {
		return report.Judgement{}, err
	}
	defer leave()
	tell(event.PhotoChecking)
	if w.Scanner != nil {
		tell(event.PhotoScanning)
		infected, err := w.Scanner.Infected(ctx, upload)
		if err != nil {
			return report.Judgement{}, w.away(ctx, "the virus scanner", err)
		}
		if infected {
			return report.Judgement{Reason: report.PhotoInfected}, nil
		}
	}
	tell(event.PhotoResizing)
	making, cancel := w.untilStopped(ctx)
	made, err := w.Maker.Make(making, upload)
	stopped := making.Err() != nil && ctx.Err() == nil
	cancel()
	if stopped {
		return report.Judgement{}, &failure.Error{Class: failure.Away, Text: "the worker stops", Err: err}
	}
	if refused, ok := errors.AsType[*picture.Refusal](err); ok {
		w.Log.Info().Str("photo_id", photo.String()).Str("reason", string(refused.Reason)).Msg("photo refused")
		return report.Judgement{Reason: refused.Reason}, nil
	}
	switch {
	case errors.Is(err, picture.ErrNoMemory):
		return report.Judgement{}, errLaneTaken
	case err != nil && ctx.Err() != nil:
		return report.Judgement{}, errTooSlow
	case err != nil:
		return report.Judgement{}, err
	}
	for size, file := range made.Files {
		if err := w.Files.Put(ctx, picture.Key(photo, size), bytes.NewReader(file), int64(len(file))); err != nil {
			return report.Judgement{}, w.away(ctx, "the storage", err)
		}
	}
	return report.Judgement{Hold: w.Hold, Width: made.Width, Height: made.Height}, nil
}

// stopGrace is how long the picture in hand may take once the worker is to stop. It
// is within the 40 s of the containers, and longer than nearly all pictures take:
// another worker has to begin it again.
const stopGrace = 25 * time.Second

// untilStopped returns a context that ends with ctx, or stopGrace after the worker was
// told to stop.
func (w *Worker) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if w.Stopping == nil {
		return ctx, cancel
	}
	unregister := context.AfterFunc(w.Stopping, func() { time.AfterFunc(stopGrace, cancel) })
	return ctx, func() { unregister(); cancel() }
}

// away returns the error of an unavailable dependency: photos wait, and no
// attempt is spent. The text of err names hosts and files, and is only for the
// log.
func (w *Worker) away(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil { // the time is over, so this counts as an attempt
		return &failure.Error{Class: failure.Transient, Text: what + " did not answer in time", Err: err}
	}
	w.Log.Warn().Err(err).Msg(what + " cannot be used, photos wait until it can")
	return &failure.Error{Class: failure.Away, Text: what + " cannot be used", Err: err}
}

// clean deletes files that are no longer needed, and records that.
func (w *Worker) clean(ctx context.Context, l postgres.Leftover) error {
	if l.Upload != "" {
		if err := w.Files.Delete(ctx, l.Upload); err != nil {
			return err
		}
	}
	if l.Pictures {
		for _, size := range picture.Sizes {
			if err := w.Files.Delete(ctx, picture.Key(l.Photo, size)); err != nil {
				return err
			}
		}
	}
	return w.Store.Cleaned(ctx, l)
}
