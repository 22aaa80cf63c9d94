package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
)

// photographed is how many of the first reports get a photo; one of their
// reporters is anonymous.
const photographed = 3

// photoPatience is how long a photo may take: the worker makes it with what the
// others leave of the processor. If the play went on before, a vote would be the
// report's next change, and the photo would come with a version nobody expects.
const photoPatience = 5 * time.Minute

// lamp is a photo of a lamp in the dusk. It has in it what telephones write: where
// it was taken, when, and by which device, whose name is camera.
//
//go:embed data/lamp.jpg
var lamp []byte

const camera = "demo-camera-of-the-reporter"

// addPhotos has residents add photos to what they reported.
func (p *play) addPhotos(ctx context.Context) error {
	p.heading("They add photos, which have the place in them where they were taken.")
	defer func(wait time.Duration) { p.wait = wait }(p.wait)
	p.wait = photoPatience
	for i := range min(photographed, len(p.reports)) {
		report := &p.reports[i]
		upload, id := uuid.New(), uuid.Nil
		what := "adds a photo to “" + shorten(report.Title, 32) + "”"
		err := p.act(ctx, report.by.name, what, report.by, "", func() (_ uuid.UUID, _ int64, err error) {
			id, err = report.by.AddPhoto(ctx, report.ID, upload, "A photo that the demo has drawn", lamp)
			if err == nil {
				err = p.show(ctx, report.ID, id)
			}
			// Its being shown is the next change of the report.
			return report.ID, report.Version + 1, err
		})
		if problem, ok := errors.AsType[*client.Error](err); ok && problem.Name() == "no-photos" {
			fmt.Fprintln(p.out, "Reports have no photos in this city.")
			return nil
		}
		if err != nil {
			return err
		}
		p.photos = append(p.photos, id)
	}
	return nil
}

// checkPhotos looks for what the photos had in them in the pictures that everybody
// is served.
func (p *play) checkPhotos(ctx context.Context) error {
	if len(p.photos) == 0 {
		return nil
	}
	pictures := 0
	for _, id := range p.photos {
		for _, size := range []int{2048, 1024, 320} {
			picture, err := p.people[residentNames[0]].Picture(ctx, id, size)
			if err != nil {
				return fmt.Errorf("get a picture: %w", err)
			}
			if err := bare(picture); err != nil {
				return fmt.Errorf("picture %d of photo %s: %w", size, id, err)
			}
			pictures++
		}
	}
	fmt.Fprintf(p.out, "%d photos had a place, a time and a device in them: none of the %d pictures that are served has anything but pixels.\n",
		len(p.photos), pictures)
	return nil
}

// bare returns an error if a JPEG file has anything but what its pixels need:
// between the start and the end of the picture only tables, frames and scans.
func bare(file []byte) error {
	if len(file) < 4 || !bytes.HasPrefix(file, []byte{0xFF, 0xD8}) || !bytes.HasSuffix(file, []byte{0xFF, 0xD9}) {
		return errors.New("it is not a JPEG file, or has something behind the picture")
	}
	if bytes.Contains(file, []byte(camera)) {
		return errors.New("it has the camera's name")
	}
	for at := 2; at+4 <= len(file); {
		marker := file[at+1]
		switch {
		case file[at] != 0xFF:
			return errors.New("it is damaged")
		case marker == 0xDA: // pixels follow
			return nil
		case marker >= 0xE0 && marker <= 0xEF || marker == 0xFE: // application data, or a comment
			return fmt.Errorf("it has a segment %X, in which metadata is", marker)
		}
		at += 2 + int(binary.BigEndian.Uint16(file[at+2:]))
	}
	return errors.New("it has no pixels")
}
