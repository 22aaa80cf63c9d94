package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/google/uuid"
)

const (
	// temporary is the folder of files that are being written. List finds the
	// files that a dead process left there, like all others.
	temporary = "tmp"
	// reserve is the part of the disk that stays free, in percent: a database
	// may be on the same disk.
	reserve = 5
	// step is how much of a file is written at a time, and how much memory a
	// file takes while it is written.
	step = 256 << 10
)

// A folder keeps each file under its key below a root. No key leads out of the
// root.
type folder struct {
	path string
	// disk is held by the one file that is being written, for a step or for its
	// end. A database on the same disk syncs its log before it answers, and
	// waits for all earlier writes of the disk: that is one step, however many
	// files arrive. No writer holds it while waiting for its reader.
	disk chan struct{}

	mu   sync.Mutex
	root *os.Root
}

var steps = sync.Pool{New: func() any { return new([step]byte) }}

var errOther = errors.New("the folder of the storage has been replaced: it has no " + temporary)

func openFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make the folder of the storage: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the storage: %w", err)
	}
	if err := root.MkdirAll(temporary, 0o750); err != nil {
		return nil, fmt.Errorf("make the folder of the storage: %w", err)
	}
	return &folder{path: dir, disk: make(chan struct{}, 1), root: root}, nil
}

// open returns the root that is at the path now. A file system that is mounted
// there may have been unmounted and mounted again: the old root would show
// files that have no path. An empty folder in its place does not mean that the
// files are lost.
func (f *folder) open() (*os.Root, error) {
	now, err := os.Stat(f.path)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the storage: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if was, err := f.root.Stat("."); err == nil && os.SameFile(was, now) {
		return f.root, nil
	}
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the storage: %w", err)
	}
	if _, err := root.Stat(temporary); err != nil {
		return nil, errors.Join(errOther, root.Close())
	}
	f.root = root // the old one is closed when nobody uses it
	return root, nil
}

func (f *folder) Put(ctx context.Context, key string, r io.Reader, size int64) (err error) {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := f.Check(ctx); err != nil {
		return err
	}
	root, err := f.open()
	if err != nil {
		return err
	}
	name := path.Join(temporary, uuid.NewString())
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("create file: %w", full(err))
	}
	defer func() {
		if err != nil {
			_ = file.Close() // closed already, or useless
			_ = root.Remove(name)
		}
	}()
	written, err := f.write(ctx, file, r)
	if err != nil {
		return fmt.Errorf("write file: %w", full(err))
	}
	if size >= 0 && written != size {
		return fmt.Errorf("write file: %w", io.ErrUnexpectedEOF)
	}
	if err := f.takeDisk(ctx); err != nil {
		return err
	}
	defer f.giveDisk()
	if err := file.Sync(); err != nil {
		return fmt.Errorf("sync file: %w", full(err))
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("close file: %w", full(err))
	}
	dir := path.Dir(key)
	if err := root.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make folder: %w", full(err))
	}
	if err := root.Rename(name, key); err != nil {
		return fmt.Errorf("name file: %w", full(err))
	}
	// Folders contain the names: without this, a power failure may leave the
	// file without its name. Each level may be new.
	for {
		if err := syncFolder(root, dir); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}

// takeDisk waits for the disk. Once ctx has ended it fails.
func (f *folder) takeDisk(ctx context.Context) error {
	select {
	case f.disk <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		f.giveDisk()
		return err
	}
	return nil
}

func (f *folder) giveDisk() { <-f.disk }

// write writes the bytes of r, up to its end, and returns their number.
func (f *folder) write(ctx context.Context, file *os.File, r io.Reader) (written int64, err error) {
	buffer := steps.Get().(*[step]byte)
	defer steps.Put(buffer)
	for ended := false; !ended; {
		n := 0
		for n < step && !ended {
			read, err := r.Read(buffer[n:])
			n += read
			if ended = err == io.EOF; err != nil && !ended { // readers do not wrap io.EOF
				return written, err
			}
		}
		if err := f.takeDisk(ctx); err != nil {
			return written, err
		}
		_, err := file.Write(buffer[:n])
		if err == nil {
			err = writeBack(file, written, int64(n))
		}
		f.giveDisk()
		if err != nil {
			return written, err
		}
		written += int64(n)
	}
	return written, nil
}

func syncFolder(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder: %w", full(err))
	}
	return nil
}

func (f *folder) Get(_ context.Context, key string, limit int64) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	file, err := root.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("open file: %w", err)
	}
	defer file.Close()
	data, err := readAll(file, limit)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return data, nil
}

func (f *folder) Delete(_ context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	root, err := f.open()
	if err != nil {
		return err
	}
	if err := root.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove file: %w", err)
	}
	// Only an empty folder is removed. A concurrent Put into it fails, and its
	// caller tries again.
	if dir := path.Dir(key); strings.Contains(dir, "/") {
		_ = root.Remove(dir)
	}
	return nil
}

func (f *folder) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		root, err := f.open()
		if err != nil {
			yield(Object{}, err)
			return
		}
		err = fs.WalkDir(root.FS(), strings.TrimSuffix(prefix, "/"), func(name string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // removed at the same time, or never made
				return nil
			}
			if err != nil || entry.IsDir() {
				return errors.Join(err, ctx.Err())
			}
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if !yield(Object{name, info.ModTime()}, nil) {
				return fs.SkipAll
			}
			return ctx.Err()
		})
		if err != nil {
			yield(Object{}, fmt.Errorf("list files: %w", err))
		}
	}
}

// Check returns ErrFull if the disk has less free space than its reserve.
func (f *folder) Check(context.Context) error {
	if _, err := f.open(); err != nil {
		return err
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(f.path, &disk); err != nil {
		return fmt.Errorf("look at the disk: %w", err)
	}
	if disk.Bavail*100 < disk.Blocks*reserve {
		return ErrFull
	}
	return nil
}

// full returns ErrFull for the errors of a full disk.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errors.Join(ErrFull, err)
	}
	return err
}
