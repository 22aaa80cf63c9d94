package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

const (
	// photoReports are the reports that photos go to: with five each, a resident has
	// uploaded as many as may be uploaded in a day.
	photoReports = 4
	// uploads are how many photos are on their way at a time: with more, they would only
	// share the bytes a second that a replica takes of all uploads, and none would end.
	uploads = 6
	// floodingGuests are how many guests flood from one address: as many as may file there in
	// an hour.
	floodingGuests = 20
	// downloaders are how many addresses download all reports at once, and downloadTimeout
	// is how long that may take.
	downloaders, downloadTimeout = 20, 10 * time.Minute
	// checkTimeout is how long the photos of a turn may take to be checked.
	checkTimeout = 2 * time.Minute
	// photoWide, photoHigh and photoNoise make a photo of a telephone: 12 megapixels, some
	// three megabytes.
	photoWide, photoHigh, photoNoise = 4000, 3000, 20
)

// An attack is one request of a flood; it returns the answer's status.
type attack func(ctx context.Context) (status int, err error)

// A settling waits until the stack has done what a flood left to it.
type settling func(ctx context.Context) error

// A kind is one of floods.
type kind struct {
	name, role string
	rate       int // requests a second, at most
	parallel   int // requests at a time, at most
	// prepare returns what the account floods with, and how the stack gets over it.
	prepare func(ctx context.Context, b *bench, who account) (attack, settling, error)
}

var kinds = []kind{
	{"votes", "resident", testbed.Writes, testbed.Parallel, plain(vote)},
	{"searches", "resident", testbed.Reads, testbed.Parallel, plain(search)},
	{"exports", "official", testbed.Reads, testbed.Parallel, plain(export)},
	{"maps", "resident", testbed.Reads, testbed.Parallel, plain(wholeMap)},
	{"photos", "resident", testbed.Writes, uploads, photos},
	{"comments", "resident", testbed.Writes, testbed.Parallel, plain(write)},
	{"streams", "resident", testbed.Reads, testbed.Parallel, streams},
	{"guests", "resident", testbed.Reads, testbed.Parallel, guests},
	{"downloads", "resident", downloaders, downloaders, downloads},
}

// plain is a kind that needs no preparation, and is over when its requests are.
func plain(ask func(ctx context.Context, b *bench, who account) error) func(context.Context, *bench, account) (attack, settling, error) {
	return func(_ context.Context, b *bench, who account) (attack, settling, error) {
		return answered(func(ctx context.Context) error { return ask(ctx, b, who) }), nothing, nil
	}
}

func nothing(context.Context) error { return nil }

// answered makes an attack of a request of which only an error has a status.
func answered(ask func(ctx context.Context) error) attack {
	return func(ctx context.Context) (int, error) {
		err := ask(ctx)
		if status := client.StatusOf(err); status != 0 {
			return status, nil
		}
		return http.StatusOK, err
	}
}

func vote(ctx context.Context, b *bench, who account) error {
	_, err := who.Vote(ctx, b.others.someOpen(), []string{"upvote", "downvote"}[rand.IntN(2)])
	return err
}

func write(ctx context.Context, b *bench, who account) error {
	return comment(ctx, who.Client, b.others.someOpen())
}

// search asks for words that most reports have or few, in an order that suits no index.
func search(ctx context.Context, _ *bench, who account) error {
	words := []string{"a+l", "lamp", "salak+1", "nobody+house", "bench+juanda"}[rand.IntN(5)]
	order := []string{"oldest", "score", "changed"}[rand.IntN(3)]
	return who.Do(ctx, http.MethodGet, "/reports?order="+order+"&q="+words, nil, nil)
}

func export(ctx context.Context, _ *bench, who account) error {
	return who.Do(ctx, http.MethodGet, "/reports/export", nil, nil)
}

// wholeMap asks for an area that nobody else asked for, so that no answer is shared.
func wholeMap(ctx context.Context, _ *bench, who account) error {
	box := testbed.City
	path := fmt.Sprintf("/map/points?zoom=13&bbox=%g,%g,%g,%g", box[0]-rand.Float64()/100, box[1], box[2], box[3])
	if rand.IntN(2) == 0 {
		path += "&q=j"
	}
	return who.Do(ctx, http.MethodGet, path, nil, nil)
}

// streams are opened, and closed once they are ready.
func streams(_ context.Context, _ *bench, who account) (attack, settling, error) {
	return func(ctx context.Context) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, *gateway+"/notifications/stream", http.NoBody)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Authorization", "Bearer "+who.Token())
		response, err := who.from.RoundTrip(r)
		if err != nil {
			return 0, err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return response.StatusCode, nil
		}
		switch event, err := sse.NewParser(response.Body, "").Next(); {
		case errors.Is(err, io.EOF): // it is to come back later
			return http.StatusTooManyRequests, nil
		case err == nil && event.Type != sse.Ready:
			return 0, fmt.Errorf("a stream began with %s", event.Type)
		default:
			return http.StatusOK, err
		}
	}, nothing, nil
}

// guests ask for the maps of wholeMap in turns, all from one address.
func guests(ctx context.Context, b *bench, who account) (attack, settling, error) {
	var made []account
	for range floodingGuests {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, *gateway+"/guests", http.NoBody)
		if err != nil {
			return nil, nil, err
		}
		response, err := who.from.RoundTrip(r)
		if err != nil {
			return nil, nil, fmt.Errorf("make a guest: %w", err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusCreated || len(response.Cookies()) == 0 {
			return nil, nil, fmt.Errorf("make a guest (the stack needs GUESTS=on): answered %s", response.Status)
		}
		made = append(made, account{who.As("", response.Cookies()[0].Value), who.from})
	}
	var asked atomic.Int64
	return answered(func(ctx context.Context) error {
		return wholeMap(ctx, b, made[asked.Add(1)%floodingGuests])
	}), nothing, nil
}

// downloads are of open data, each to another address. One that has begun has to be whole.
func downloads(_ context.Context, _ *bench, who account) (attack, settling, error) {
	var asked, whole, refused, cut atomic.Int64
	download := func(ctx context.Context) (int, error) {
		n := asked.Add(1)
		if n > downloaders {
			return http.StatusTooManyRequests, nil // once a turn
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downloadTimeout)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, *gateway+"/open-data/reports.csv", http.NoBody)
		if err != nil {
			return 0, err
		}
		response, err := from{fmt.Sprintf("192.0.2.%d", n+1), who.from.transport}.RoundTrip(r)
		if err != nil {
			return 0, err
		}
		defer func() { _ = response.Body.Close() }()
		_, err = io.Copy(io.Discard, response.Body)
		switch {
		case response.StatusCode != http.StatusOK:
			refused.Add(1)
		case err != nil:
			cut.Add(1)
		default:
			whole.Add(1)
		}
		return response.StatusCode, err
	}
	return download, func(context.Context) error {
		fmt.Printf("downloads: %d whole, %d refused before they began, %d cut\n", whole.Load(), refused.Load(), cut.Load())
		if cut.Load() > 0 {
			return fmt.Errorf("%d downloads were cut", cut.Load())
		}
		return nil
	}, nil
}

// photos files the reports that the photos belong to.
func photos(ctx context.Context, b *bench, who account) (attack, settling, error) {
	filed := make([]uuid.UUID, photoReports)
	for i := range filed {
		report, err := who.CreateReport(ctx, b.others.newReport())
		if err != nil {
			return nil, nil, fmt.Errorf("file a report for photos: %w", err)
		}
		filed[i] = report.ID
	}
	var sent atomic.Int64
	upload := answered(func(ctx context.Context) error {
		_, err := who.AddPhoto(ctx, filed[sent.Add(1)%photoReports], uuid.New(), "A lamp", b.photo)
		return err
	})
	return upload, func(ctx context.Context) error {
		return wait.Until(ctx, checkTimeout, "the photos are checked", func(ctx context.Context) (bool, error) {
			for _, report := range filed {
				var list struct{ Photos []struct{ State string } }
				if err := who.Do(ctx, http.MethodGet, "/reports/"+report.String()+"/photos", nil, &list); err != nil {
					return false, err
				}
				for _, photo := range list.Photos {
					if photo.State == "checking" {
						return false, nil
					}
				}
			}
			return true, nil
		})
	}, nil
}

// newPhoto returns a JPEG file as large as those of telephones.
func newPhoto() ([]byte, error) {
	m := image.NewRGBA(image.Rect(0, 0, photoWide, photoHigh))
	for y := range photoHigh {
		for x := range photoWide {
			grain := uint8(rand.IntN(photoNoise))
			m.SetRGBA(x, y, color.RGBA{uint8(x/20) + grain, uint8(y/15) + grain, 100 + grain, 255})
		}
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, m, &jpeg.Options{Quality: 85}); err != nil {
		return nil, fmt.Errorf("make a photo: %w", err)
	}
	return file.Bytes(), nil
}
