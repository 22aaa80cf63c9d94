package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// maxPicture is above the largest possible picture: 2048 × 2048 pixels of
	// noise.
	maxPicture = 8 << 20
	// uploadRate is how many bytes a second a replica accepts from all uploads
	// together: faster uploads are slowed down. A photo is less urgent than
	// other requests, which compete with it for the disk, the network and the
	// processors: docs/decisions/0021-photos.md has the figures.
	uploadRate = 16 << 20
	// uploadBurst is how many bytes are not slowed down: a photo of a
	// telephone.
	uploadBurst = 4 << 20
	// uploadsPerHour is how many bytes an account, or an address of guests, may send to a replica in an hour: more
	// than all photos of a day. What is on its way counts, and what was sent before.
	uploadsPerHour = 384 << 20
	// uploadRead is how much of an upload is read at a time. With 100
	// concurrent uploads each still makes progress every second.
	uploadRead = 64 << 10
	// forgetTimeout bounds the deletion of a useless upload.
	forgetTimeout = 10 * time.Second
)

// Photos are those of reports.
type Photos struct {
	Store *postgres.Photos
	Files blob.Store // uploads, and the pictures that are served; nil in a city whose reports have no photos
	Log   zerolog.Logger

	rate    *rate.Limiter      // bytes, of all uploads together
	perUser *ratelimit.Limiter // bytes
}

// Operations are those on photos.
func (h Photos) Operations() openapi.Operations {
	h.rate, h.perUser = rate.NewLimiter(uploadRate, uploadBurst), ratelimit.New(ratelimit.Limit{Turns: uploadsPerHour, Period: time.Hour})
	return openapi.Operations{
		"putPhoto":       {Handler: h.withFiles(h.putPhoto), Timeout: service.Unlimited}, // as long as the client sends
		"listPhotos":     {Handler: answered(h.listPhotos), Timeout: service.DefaultTimeout},
		"removePhoto":    {Handler: done(h.removePhoto), Timeout: changeTimeout},
		"showPhoto":      {Handler: answered(h.showPhoto), Timeout: changeTimeout},
		"redactPhoto":    {Handler: h.withFiles(answeredTo(h.redactPhoto)), Timeout: service.DefaultTimeout},
		"listHeldPhotos": {Handler: answered(h.listHeldPhotos), Timeout: service.DefaultTimeout},
		"getPicture":     {Handler: h.withFiles(h.getPicture), Timeout: service.DefaultTimeout},
	}
}

// withFiles returns next for cities whose reports have photos.
func (h Photos) withFiles(next service.HandlerFunc) service.HandlerFunc {
	if h.Files == nil {
		return func(http.ResponseWriter, *http.Request) error { return report.ErrNoPhotos }
	}
	return next
}

// putPhoto handles PUT /reports/{id}/photos/{photo_id}. It passes the bytes on
// to the storage as they arrive; the worker checks whether they are a picture.
func (h Photos) putPhoto(w http.ResponseWriter, r *http.Request) error {
	by := user(r)
	// Clients name their photos as they like.
	upload := report.Upload{
		ID: openapi.PathID(r, "photo_id"), ReportID: pathID(r), Alt: strings.TrimSpace(r.URL.Query().Get("alt")), After: r.URL.Query().Get("purpose") == string(reportapi.After),
		Key: picture.QuarantineKey(),
	}
	wanted, err := contentDigest(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	known, err := h.Store.CheckUpload(ctx, upload.ReportID, upload.ID, upload.After, wanted, by)
	cancel()
	if err != nil {
		return err
	}
	if known != nil { // its bytes need not be read again
		return answerUpload(w, http.StatusOK, *known)
	}
	size := r.ContentLength
	if size < 0 {
		size = report.MaxPhotoBytes
	}
	if wait := h.perUser.TakeSome(payer(r), float64(size)); wait > 0 {
		return refusedFor(wait, service.TooManyRequests, "too many bytes of uploads of this user or address")
	}
	body := &uploadBody{ctx: r.Context(), r: r.Body, limit: h.rate, hash: sha256.New()}
	err = h.Files.Put(r.Context(), upload.Key, body, r.ContentLength)
	switch {
	case body.err != nil:
		return body.problem()
	case err != nil:
		return storageFault(err)
	}
	upload.Bytes = body.n
	body.hash.Sum(upload.Hash[:0])
	if wanted != nil && !bytes.Equal(wanted, upload.Hash[:]) {
		h.forget(r, upload.Key)
		return fault.NewInvalid("Content-Digest", "must be the digest of the body: another body arrived")
	}
	ctx, cancel = context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	photo, added, err := h.Store.Add(ctx, upload, by)
	if !added && (err == nil || fault.KindOf(err) != "") { // after other errors a row may exist
		h.forget(r, upload.Key)
	}
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if !added {
		status = http.StatusOK
	}
	return answerUpload(w, status, photo)
}

func answerUpload(w http.ResponseWriter, status int, photo report.Photo) error {
	w.Header().Set("Location", pathOf(photo.ReportID)+"/photos")
	return service.Encode(w, status, photoOf(photo))
}

// An uploadBody is the body of a request on its way to the storage. It records
// whether the body broke off, which the storage cannot tell.
type uploadBody struct {
	ctx   context.Context // of the request
	r     io.Reader
	limit *rate.Limiter // of all uploads together
	hash  hash.Hash
	n     int64
	err   error // that ended the reading, except for io.EOF
}

func (b *uploadBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p[:min(len(p), uploadRead)])
	b.hash.Write(p[:n]) // never fails
	b.n += int64(n)
	if err != nil && err != io.EOF { // readers return that as it is
		b.err = err
		return n, err
	}
	if b.err = b.limit.WaitN(b.ctx, n); b.err != nil {
		return n, b.err
	}
	return n, err
}

// problem returns why the body was not read.
func (b *uploadBody) problem() error {
	if _, ok := errors.AsType[*http.MaxBytesError](b.err); ok {
		return b.err
	}
	if errors.Is(b.err, os.ErrDeadlineExceeded) {
		return service.RequestTimeout.New("the body stopped arriving")
	}
	return service.MalformedBody.New("the body ended early")
}

// forget deletes an upload that belongs to no photo. The worker's upkeep
// deletes the uploads that it misses.
func (h Photos) forget(r *http.Request, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), forgetTimeout)
	defer cancel()
	if err := h.Files.Delete(ctx, key); err != nil {
		h.Log.Warn().Err(err).Msg("deleting an upload failed, upkeep will retry")
	}
}

// contentDigest returns the SHA-256 in the request's Content-Digest (RFC 9530),
// or nil without one.
func contentDigest(r *http.Request) ([]byte, error) {
	for entry := range strings.SplitSeq(r.Header.Get("Content-Digest"), ",") {
		encoded, ok := strings.CutPrefix(strings.TrimSpace(entry), "sha-256=:")
		if !ok { // of another algorithm, which a receiver may ignore
			continue
		}
		digest, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, ":"))
		if err != nil || len(digest) != sha256.Size || !strings.HasSuffix(encoded, ":") {
			return nil, fault.NewInvalid("Content-Digest", "must be sha-256=:<base64 of 32 bytes>:")
		}
		return digest, nil
	}
	return nil, nil
}

// listPhotos handles GET /reports/{id}/photos.
func (h Photos) listPhotos(r *http.Request) (reportapi.PhotoList, error) {
	photos, err := h.Store.List(r.Context(), pathID(r), user(r))
	return reportapi.PhotoList{Photos: service.Each(photos, photoOf)}, err
}

// listHeldPhotos handles GET /reports/queue/photos.
func (h Photos) listHeldPhotos(r *http.Request) (reportapi.PhotoList, error) {
	photos, err := h.Store.Held(r.Context(), intParam(r, "limit"), user(r))
	return reportapi.PhotoList{Photos: service.Each(photos, photoOf)}, err
}

// removePhoto handles DELETE /reports/{id}/photos/{photo_id}. The files are no
// longer served; the worker's upkeep deletes them.
func (h Photos) removePhoto(r *http.Request) error {
	return h.Store.Remove(r.Context(), pathID(r), openapi.PathID(r, "photo_id"), user(r))
}

// showPhoto handles POST /reports/{id}/photos/{photo_id}/show.
func (h Photos) showPhoto(r *http.Request) (reportapi.PhotoList, error) {
	if err := h.Store.Show(r.Context(), pathID(r), openapi.PathID(r, "photo_id"), user(r)); err != nil {
		return reportapi.PhotoList{}, err
	}
	return h.listPhotos(r)
}

// redactPhoto handles POST /reports/{id}/photos/{photo_id}/redact.
func (h Photos) redactPhoto(r *http.Request, req reportapi.Redaction) (reportapi.Photo, error) {
	rects := service.Each(req.Rects, func(rect reportapi.PhotoRect) report.Rect {
		return report.Rect{X: rect.X, Y: rect.Y, Width: rect.Width, Height: rect.Height}
	})
	by, redacted := user(r), report.Photo{ID: report.PhotoID(uuid.New())}
	photo, err := h.Store.Get(r.Context(), openapi.PathID(r, "photo_id"), by)
	if err != nil {
		return reportapi.Photo{}, err
	}
	made, err := h.picture(r.Context(), picture.Key(photo.ID, picture.Sizes[0]))
	if err != nil {
		return reportapi.Photo{}, err
	}
	pictures, err := picture.Redact(r.Context(), made, rects)
	if err != nil {
		return reportapi.Photo{}, err
	}
	redacted.Width, redacted.Height = pictures.Width, pictures.Height
	for size, file := range pictures.Files {
		if err := h.Files.Put(r.Context(), picture.Key(redacted.ID, size), bytes.NewReader(file), int64(len(file))); err != nil {
			return reportapi.Photo{}, storageFault(err)
		}
	}
	// If this fails, the worker's upkeep deletes the files.
	redacted, err = h.Store.Replace(r.Context(), pathID(r), photo.ID, redacted, by)
	return photoOf(redacted), err
}

// getPicture handles GET /photos/{id}/{name}. Pictures are made by the worker,
// and browsers must not treat them as documents in any case.
func (h Photos) getPicture(w http.ResponseWriter, r *http.Request) error {
	photo, err := h.Store.Get(r.Context(), pathID(r), user(r))
	if err != nil {
		return err
	}
	size := int(service.Number(strings.TrimSuffix(r.PathValue("name"), ".jpg")))
	file, err := h.picture(r.Context(), picture.Key(photo.ID, size))
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("Cache-Control", "no-store")
	if photo.State == report.PhotoReady { // the picture of an id never changes
		tag := fmt.Sprintf(`"%s-%d"`, photo.ID, size)
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
		header.Set("ETag", tag)
		if strings.Contains(strings.Join(r.Header.Values("If-None-Match"), ","), tag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	// It is small, and is sent whole even if a range is requested, as RFC 9110,
	// 14.2 allows: http.ServeContent would answer a faulty range in plain text.
	header.Set("Content-Length", strconv.Itoa(len(file)))
	return send(w, "image/jpeg", file)
}

// picture returns a picture from the storage.
func (h Photos) picture(ctx context.Context, key string) ([]byte, error) {
	file, err := h.Files.Get(ctx, key, maxPicture)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, report.ErrNoPhoto
	}
	if err != nil {
		return nil, storageFault(err)
	}
	return file, nil
}

// storageFault hides storage errors from the client, except whether retrying
// can help.
func storageFault(err error) error {
	if errors.Is(err, blob.ErrFull) {
		return &fault.Error{Kind: report.StorageFull, Msg: "photos cannot be accepted until an operator makes room", Err: err}
	}
	return &fault.Error{Kind: fault.Unavailable, Msg: "the storage of photos is unavailable", Err: err}
}

func photoOf(p report.Photo) reportapi.Photo {
	out := reportapi.Photo{
		ID: p.ID, ReportID: p.ReportID, State: reportapi.PhotoState(p.State), Reason: reportapi.PhotoReason(p.Reason),
		Alt: p.Alt, Official: p.Official, Width: int32(p.Width), Height: int32(p.Height), CreatedAt: p.CreatedAt,
	}
	if p.After {
		out.Purpose = reportapi.After
	}
	return out
}
