package blob

import (
	"errors"
	"os"
	"syscall"
)

// Flags of sync_file_range(2), which package syscall does not name.
const (
	waitBefore = 1
	startWrite = 2
	waitAfter  = 4
)

// writeBack passes a part of a file on to the disk, and returns once it is
// there: otherwise Linux would collect the whole file until the sync. It does
// not replace the sync, but makes it short.
func writeBack(file *os.File, offset, length int64) error {
	if length == 0 { // 0 would mean the rest of the file
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
	if errors.Is(failed, errors.ErrUnsupported) { // the sync is enough
		return nil
	}
	// The sync would not report a disk error again that was reported here.
	return os.NewSyscallError("sync_file_range", failed)
}
