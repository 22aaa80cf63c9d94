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
	// temporary is the folder of files that are being written. What a dead
	// process left there is found by List, like any other file.
	temporary = "tmp"
	// reserve is the part of the disk that stays free, in percent: a database
	// may be on the same one.
	reserve = 5
	// step is how much of a file is written at a time, and what a file that is
	// on its way takes of memory.
	step = 256 << 10
)

// A folder keeps each file under its key below a root, which no key leads out of.
type folder struct {
	path string
	// disk is held by the one file that is being written, for a step of it or for
	// its end. A database on the same disk syncs its log before it answers, and
	// waits for whatever the disk was given before: that is one step, however
	// many files arrive. Nobody holds it while he waits for what he reads.
	disk chan struct{}

	mu   sync.Mutex
	root *os.Root
}

var steps = sync.Pool{New: func() any { return new([step]byte) }}

var errOther = errors.New("the folder of the storage is not the one that it was: it has no " + temporary)

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

// open returns the root as it is at the path by now. What is mounted there may
// have gone, and come back: the root that was opened would show what is nowhere
// any more. An empty folder in its place has none of the files, which are not
// lost by that.
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
	f.root = root // the one before may be in use, and is closed once it is not
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
			_ = file.Close() // closed already, or of no use
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
	// The names are in the folders: without this, a machine that loses its power
	// may have the file without its name. Each level may be new.
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

// takeDisk waits for the disk. Once ctx has ended nobody gets it.
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

// write writes what r has, up to its end, and returns how much that was.
func (f *folder) write(ctx context.Context, file *os.File, r io.Reader) (written int64, err error) {
	buffer := steps.Get().(*[step]byte)
	defer steps.Put(buffer)
	for ended := false; !ended; {
		n := 0
		for n < step && !ended {
			read, err := r.Read(buffer[n:])
			n += read
			if ended = err == io.EOF; err != nil && !ended { // readers return it as it is
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
	// A folder that is empty goes, one that is not stays. A Put into it at this
	// very moment fails, and its caller tries again.
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
			if errors.Is(err, fs.ErrNotExist) { // removed meanwhile, or never made
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

// Check says ErrFull when the disk has less free than its reserve.
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

// full returns ErrFull for what a disk without room fails with.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errors.Join(ErrFull, err)
	}
	return err
}
