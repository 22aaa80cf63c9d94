package event

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
)

// A PhotoStage is what the photo worker does with a photo.
type PhotoStage string

// The stages, in their order. A photo is scanned where there is a scanner.
const (
	PhotoChecking PhotoStage = "checking" // the upload is fetched and checked
	PhotoScanning PhotoStage = "scanning" // the virus scanner is asked
	PhotoResizing PhotoStage = "resizing" // the pictures are made that are served
)

// PhotoProgress shows the uploader of a photo how far the worker is with it. It
// travels over the ProgressExchange without confirms, is kept nowhere and may get
// lost: only the verdict counts, and comes as a Message.
type PhotoProgress struct {
	// To is the id of the uploader, sealed for PhotoID.
	To       string     `json:"to"`
	ReportID uuid.UUID  `json:"report_id"`
	PhotoID  uuid.UUID  `json:"photo_id"`
	Stage    PhotoStage `json:"stage"`
}

// DecodePhotoProgress reads a body from the ProgressExchange. It refuses one that
// breaks the contract, with an error that does not quote the body.
func DecodePhotoProgress(body []byte) (PhotoProgress, error) {
	var p PhotoProgress
	err := json.Unmarshal(body, &p)
	if err != nil {
		err = &FieldError{"body", "of another type"}
	} else {
		err = firstBroken(
			rule{p.ReportID != uuid.Nil, "report_id", "the id of a report"}, isID("photo_id", p.PhotoID),
			oneOf("stage", p.Stage, PhotoChecking, PhotoScanning, PhotoResizing))
	}
	if err != nil {
		return PhotoProgress{}, fmt.Errorf("progress of a photo: %w", err)
	}
	return p, nil
}
