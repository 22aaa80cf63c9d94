package picture

import (
	"fmt"

	"github.com/google/uuid"
)

// Folders of the storage.
const (
	Quarantine = "quarantine/" // uploads, under random names
	Folder     = "photos/"     // served pictures, under the ids of the photos
)

// QuarantineKey returns a key for an upload.
func QuarantineKey() string { return Quarantine + uuid.NewString() }

// Key is the key of the picture of a photo whose longest side is size.
func Key(photo uuid.UUID, size int) string { return fmt.Sprintf("%s%s/%d.jpg", Folder, photo, size) }
