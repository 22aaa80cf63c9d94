package blob

import (
	"errors"
	"os"
	"syscall"
)

// Flags of sync_file_range(2), which package syscall has no names for.
const (
	waitBefore = 1
	startWrite = 2
	waitAfter  = 4
)

// writeBack passes a part of a file on to the disk, and returns once it is there:
// Linux would collect the whole file until it is synced. It is no sync, which
// makes that one short.
func writeBack(file *os.File, offset, length int64) error {
	if length == 0 { // which would mean all that follows
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = syscall.SyncFileRange(int(fd), offset, length, waitBefore|startWrite|waitAfter)
	}); err != nil {
		return err
	}
	if errors.Is(failed, errors.ErrUnsupported) { // the file system's sync will do
		return nil
	}
	// An error of the disk that was told here, the sync would not tell again.
	return os.NewSyscallError("sync_file_range", failed)
}
