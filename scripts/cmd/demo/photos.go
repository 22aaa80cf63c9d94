package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/internal/client"
)

const readyType = "report.photo.ready"

// photographed is how many of the first reports get a photo; one of their
// reporters is anonymous.
const photographed = 3

// photoPatience is how long a photo may take: the worker makes it with what the
// others leave of the processor. If the play went on before, a vote would be the
// report's next change, and the photo would come with a version nobody expects.
const photoPatience = 5 * time.Minute

// camera is in each photo, as the name of what took it.
const camera = "demo-camera-of-the-reporter"

// addPhotos has residents add photos to what they reported. Each has in it what
// telephones write: where it was taken, when, and by which device.
func (p *play) addPhotos(ctx context.Context) error {
	p.heading("They add photos, which have the place in them where they were taken.")
	defer func(wait time.Duration) { p.wait = wait }(p.wait)
	p.wait = photoPatience
	for i := range min(photographed, len(p.reports)) {
		report := &p.reports[i]
		photo := photoWithPlace(i)
		upload, id := uuid.New(), uuid.Nil
		what := "adds a photo to “" + shorten(report.Title, 32) + "”"
		err := p.act(ctx, report.by.name, what, report.by.name, readyType, func() (_ uuid.UUID, _ int64, err error) {
			id, err = report.by.AddPhoto(ctx, report.ID, upload, "A photo that the demo has drawn", photo)
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

// photoWithPlace draws a lamp in the dusk, the nth of them, as a telephone would
// take it.
func photoWithPlace(n int) []byte {
	const width, height = 1600, 1200
	photo := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		shade := uint8(40 + 120*y/height)
		line := image.Rect(0, y, width, y+1)
		draw.Draw(photo, line, image.NewUniform(color.RGBA{shade / 2, shade / uint8(n+1), shade, 255}), image.Point{}, draw.Src)
	}
	iron := image.NewUniform(color.RGBA{30, 30, 34, 255})
	draw.Draw(photo, image.Rect(780, 300, 820, height), iron, image.Point{}, draw.Src)
	draw.Draw(photo, image.Rect(640, 240, 820, 300), iron, image.Point{}, draw.Src)
	var file bytes.Buffer
	if err := jpeg.Encode(&file, photo, nil); err != nil {
		panic(err) // a buffer takes everything
	}
	tags := placeTags(-6.5971-float64(n)/1000, 106.8060, camera)
	head := []byte{0xFF, 0xE1, 0, 0}
	binary.BigEndian.PutUint16(head[2:], uint16(len(tags)+2))
	return append(append(append(bytes.Clone(file.Bytes()[:2]), head...), tags...), file.Bytes()[2:]...)
}

// placeTags returns the content of a JPEG's Exif segment (CIPA DC-008) with the
// camera's model, the time, and a place in degrees.
func placeTags(latitude, longitude float64, model string) []byte {
	const (
		asciiType, longType, rationalType = 2, 4, 5

		tagModel, tagDateTime, tagGPS                              = 0x0110, 0x0132, 0x8825
		tagLatitudeRef, tagLatitude, tagLongitudeRef, tagLongitude = 1, 2, 3, 4

		start   = 8
		entries = 3
		gps     = start + 2 + entries*12 + 4
		values  = gps + 2 + 4*12 + 4
	)
	var tiff, data bytes.Buffer
	order := binary.LittleEndian
	write := func(out *bytes.Buffer, what ...any) {
		for _, v := range what {
			if err := binary.Write(out, order, v); err != nil {
				panic(err) // a buffer takes everything of a fixed size
			}
		}
	}
	// text and degrees put a value behind the directories, and return where it is.
	text := func(s string) uint32 {
		at := uint32(values + data.Len())
		write(&data, []byte(s+"\x00"))
		return at
	}
	degrees := func(value float64) uint32 {
		at := uint32(values + data.Len())
		minutes := (max(value, -value) - float64(int(max(value, -value)))) * 60
		write(&data, uint32(max(value, -value)), uint32(1), uint32(minutes), uint32(1), uint32((minutes-float64(int(minutes)))*6000), uint32(100))
		return at
	}
	south, east := [4]byte{'N'}, [4]byte{'W'}
	if latitude < 0 {
		south[0] = 'S'
	}
	if longitude >= 0 {
		east[0] = 'E'
	}
	taken := time.Now().Format("2006:01:02 15:04:05")
	write(&tiff, []byte("II*\x00"), uint32(start), uint16(entries))
	write(&tiff, uint16(tagModel), uint16(asciiType), uint32(len(model)+1), text(model))
	write(&tiff, uint16(tagDateTime), uint16(asciiType), uint32(len(taken)+1), text(taken))
	write(&tiff, uint16(tagGPS), uint16(longType), uint32(1), uint32(gps), uint32(0))
	write(&tiff, uint16(4))
	write(&tiff, uint16(tagLatitudeRef), uint16(asciiType), uint32(2), south)
	write(&tiff, uint16(tagLatitude), uint16(rationalType), uint32(3), degrees(latitude))
	write(&tiff, uint16(tagLongitudeRef), uint16(asciiType), uint32(2), east)
	write(&tiff, uint16(tagLongitude), uint16(rationalType), uint32(3), degrees(longitude))
	write(&tiff, uint32(0))
	return append(append([]byte("Exif\x00\x00"), tiff.Bytes()...), data.Bytes()...)
}
