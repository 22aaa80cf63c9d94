package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/cityconnect/cityconnect/report-service/internal/blob"
)

// stores has each kind of store, empty. PHOTO_TEST_S3 and its keys name a bucket
// of a real server, for a run against that one as well.
var stores = map[string]func(t *testing.T) blob.Store{
	"folder": func(t *testing.T) blob.Store { return open(t, blob.Config{URL: "file://" + t.TempDir()}) },
	"bucket": func(t *testing.T) blob.Store {
		backend := s3mem.New()
		if err := backend.CreateBucket("photos"); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(gofakes3.New(backend).Server())
		t.Cleanup(server.Close)
		return open(t, blob.Config{URL: "s3://photos?endpoint=" + server.URL + "&region=us-east-1", AccessKey: "key", SecretKey: "secret"})
	},
	"server": func(t *testing.T) blob.Store {
		url := os.Getenv("PHOTO_TEST_S3")
		if url == "" {
			t.Skip("PHOTO_TEST_S3 names no bucket")
		}
		return open(t, blob.Config{URL: url, AccessKey: os.Getenv("PHOTO_TEST_S3_ACCESS_KEY"), SecretKey: os.Getenv("PHOTO_TEST_S3_SECRET_KEY")})
	},
}

func open(t *testing.T, cfg blob.Config) blob.Store {
	t.Helper()
	s, err := blob.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// each runs a test against every kind of store.
func each(t *testing.T, test func(t *testing.T, s blob.Store)) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func put(t *testing.T, s blob.Store, key, text string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(text), int64(len(text))); err != nil {
		t.Errorf("Put %s: %v", key, err) // no Fatalf: it is called from other goroutines
	}
}

func keys(t *testing.T, s blob.Store, prefix string) (found []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		if age := time.Since(o.ModifiedAt); age < -time.Minute || age > time.Hour {
			t.Errorf("%s was modified %v ago", o.Key, age)
		}
		found = append(found, o.Key)
	}
	slices.Sort(found)
	return found
}

func TestPutGetDelete(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s blob.Store) {
		if err := s.Check(t.Context()); err != nil {
			t.Fatalf("Check: %v", err)
		}
		put(t, s, "photos/a/320.jpg", "first")
		put(t, s, "photos/a/320.jpg", "second") // in place of the first
		if err := s.Put(t.Context(), "quarantine/b", strings.NewReader("unsized"), -1); err != nil {
			t.Fatalf("Put without a size: %v", err)
		}
		for key, want := range map[string]string{"photos/a/320.jpg": "second", "quarantine/b": "unsized"} {
			if got, err := s.Get(t.Context(), key, 100); err != nil || string(got) != want {
				t.Errorf("Get %s: %q, error %v; want %q", key, got, err, want)
			}
		}
		if _, err := s.Get(t.Context(), "quarantine/b", 6); err == nil {
			t.Error("Get of 7 bytes with a limit of 6 succeeded")
		}
		if got, want := keys(t, s, "photos/"), []string{"photos/a/320.jpg"}; !slices.Equal(got, want) {
			t.Errorf("List: %q, want %q", got, want)
		}
		for range 2 { // what is gone may be removed again
			if err := s.Delete(t.Context(), "photos/a/320.jpg"); err != nil {
				t.Errorf("Delete: %v", err)
			}
		}
		if _, err := s.Get(t.Context(), "photos/a/320.jpg", 100); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Get of what is removed: error %v, want ErrNotFound", err)
		}
		if got := keys(t, s, "photos/"); len(got) > 0 {
			t.Errorf("List: %q, want none", got)
		}
	})
}

// A transfer that breaks off leaves nothing: neither under its key, where the earlier
// content stays, nor anywhere else.
func TestPutIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s blob.Store) {
		put(t, s, "quarantine/a", "before")
		broken := errors.New("the client left")
		cut := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(broken))
		if err := s.Put(t.Context(), "quarantine/a", cut, 2<<20); err == nil {
			t.Error("Put of what broke off succeeded")
		}
		if err := s.Put(t.Context(), "quarantine/b", strings.NewReader("short"), 100); err == nil {
			t.Error("Put of 5 bytes of 100 succeeded")
		}
		chunked := io.MultiReader(strings.NewReader("cut"), iotest.ErrReader(io.ErrUnexpectedEOF)) // as net/http tells it
		if err := s.Put(t.Context(), "quarantine/d", chunked, -1); err == nil {
			t.Error("Put of a body of no length that broke off succeeded")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 { // it is not by chance
			if err := s.Put(ctx, "quarantine/c", strings.NewReader("late"), 4); err == nil {
				t.Error("Put after the end succeeded")
			}
		}
		if got, err := s.Get(t.Context(), "quarantine/a", 100); err != nil || string(got) != "before" {
			t.Errorf("Get: %q, error %v; want what was there before", got, err)
		}
		if got, want := keys(t, s, "quarantine/"), []string{"quarantine/a"}; !slices.Equal(got, want) {
			t.Errorf("List: %q, want %q", got, want)
		}
		if got := keys(t, s, "tmp/"); len(got) > 0 {
			t.Errorf("left behind: %q", got)
		}
	})
}

// A file that stops arriving keeps nobody else from the disk, wherever it stops.
func TestSlowUploadHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s blob.Store) {
		const size = 1 << 20
		var uploading sync.WaitGroup
		var slow []*io.PipeWriter
		for i, arrived := range []int{0, 1, size/2 - 1, size / 2, size - 1} {
			r, w := io.Pipe()
			slow = append(slow, w)
			uploading.Go(func() {
				if err := s.Put(t.Context(), fmt.Sprintf("quarantine/slow-%d", i), r, size); err != nil {
					t.Errorf("Put of what came slowly: %v", err)
				}
			})
			if _, err := w.Write(make([]byte, arrived)); err != nil {
				t.Fatal(err)
			}
		}
		put(t, s, "quarantine/fast", strings.Repeat("x", size))
		for i, arrived := range []int{0, 1, size/2 - 1, size / 2, size - 1} {
			if _, err := slow[i].Write(make([]byte, size-arrived)); err != nil {
				t.Fatal(err)
			}
			slow[i].Close()
		}
		uploading.Wait()
		for i := range slow {
			key := fmt.Sprintf("quarantine/slow-%d", i)
			if got, err := s.Get(t.Context(), key, size); err != nil || len(got) != size {
				t.Errorf("Get %s: %d bytes, error %v; want %d", key, len(got), err, size)
			}
		}
	})
}

// Readers of a key that is written again and again see a whole file each time.
func TestReadersSeeWholeFiles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s blob.Store) {
		const size, rounds = 100_000, 50
		content := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), size) }
		put(t, s, "photos/a/320.jpg", content(0))
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range rounds {
				put(t, s, "photos/a/320.jpg", content(i))
			}
		})
		for range 4 {
			wg.Go(func() {
				for range rounds {
					got, err := s.Get(t.Context(), "photos/a/320.jpg", size)
					if err != nil || len(got) != size || strings.Trim(string(got), string(got[:1])) != "" {
						t.Errorf("read %d bytes, error %v; want %d equal ones", len(got), err, size)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestKeysOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s blob.Store) {
		for _, key := range []string{"", "/a", "../a", "a/../b", "A", "a//b", "a/", "a b", "a\x00"} {
			if err := s.Put(t.Context(), key, strings.NewReader("x"), 1); err == nil {
				t.Errorf("Put %q succeeded", key)
			}
			if _, err := s.Get(t.Context(), key, 10); err == nil {
				t.Errorf("Get %q succeeded", key)
			}
			if err := s.Delete(t.Context(), key); err == nil {
				t.Errorf("Delete %q succeeded", key)
			}
		}
	})
}

// A link that somebody put into the folder leads nowhere else.
func TestFolderIsNotLeft(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	s := open(t, blob.Config{URL: "file://" + dir})
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "photos")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "photos/secret", 100); err == nil {
		t.Errorf("Get: %q", got)
	}
	if err := s.Put(t.Context(), "photos/new", strings.NewReader("x"), 1); err == nil {
		t.Error("Put through a link succeeded")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "photos", "/var/lib", "file://host/photos", "file:photos", "http://bucket", "s3://", "s3://bucket", "s3://bucket?endpoint=host:9000",
		"s3://bucket/folder?endpoint=http://127.0.0.1:9000", "s3://us:pw%zz@bucket",
	} {
		if _, err := blob.Open(blob.Config{URL: url}); err == nil {
			t.Errorf("Open %q succeeded", url)
		} else if strings.Contains(err.Error(), "us:pw") {
			t.Errorf("Open %q: the error shows the password: %v", url, err)
		}
	}
}

// A server that is away is an error soon, and not what is missing.
func TestServerIsAway(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	s := open(t, blob.Config{URL: "s3://photos?endpoint=" + server.URL, AccessKey: "key", SecretKey: "secret"})
	if _, err := s.Get(t.Context(), "photos/a/320.jpg", 100); err == nil || errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get: error %v, want one of the network", err)
	}
	if err := s.Check(t.Context()); err == nil {
		t.Error("Check succeeded")
	}
}

// A folder that goes, such as a disk that is no longer mounted, is an error and
// not a missing file, also where an empty folder is in its place. Once it is back
// it is used again, with all that was in it.
func TestFolderGoesAndComesBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "photos")
	s := open(t, blob.Config{URL: "file://" + dir})
	put(t, s, "photos/a/320.jpg", "kept")
	away := func(what string) {
		t.Helper()
		if _, err := s.Get(t.Context(), "photos/a/320.jpg", 100); err == nil || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: Get: error %v, want another than ErrNotFound", what, err)
		}
		for name, err := range map[string]error{
			"Put":    s.Put(t.Context(), "quarantine/b", strings.NewReader("x"), 1),
			"Delete": s.Delete(t.Context(), "photos/a/320.jpg"),
			"Check":  s.Check(t.Context()),
		} {
			if err == nil {
				t.Errorf("%s: %s succeeded", what, name)
			}
		}
		for _, err := range s.List(t.Context(), "photos/") {
			if err == nil {
				t.Errorf("%s: List found something", what)
			}
		}
	}
	for range 2 {
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		away("no folder")
		if err := os.Mkdir(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		away("an empty folder")
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+".away", dir); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), "photos/a/320.jpg", 100); err != nil || string(got) != "kept" {
			t.Errorf("back again: %q, error %v", got, err)
		}
		put(t, s, "quarantine/b", "x")
	}
}

// A disk that fills up while a file is written keeps nothing of it, and says that
// it is full; the files that it has stay, and there is room once some have gone.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	s := open(t, blob.Config{URL: "file://" + dir})
	put(t, s, "photos/a/320.jpg", "kept")
	refused := func(size int) {
		t.Helper()
		if err := s.Put(t.Context(), "quarantine/large", strings.NewReader(strings.Repeat("x", size)), int64(size)); !errors.Is(err, blob.ErrFull) {
			t.Errorf("Put of %d bytes: error %v, want ErrFull", size, err)
		}
		if got := slices.Concat(keys(t, s, "quarantine/"), keys(t, s, "tmp/")); slices.Contains(got, "quarantine/large") || len(got) > 1 {
			t.Errorf("left behind: %q", got)
		}
	}
	refused(8 << 20) // no room for the whole of it
	put(t, s, "quarantine/most", strings.Repeat("x", 4_000_000))
	refused(1) // what is left stays free
	if err := s.Check(t.Context()); !errors.Is(err, blob.ErrFull) {
		t.Errorf("Check: error %v, want ErrFull", err)
	}
	if got, err := s.Get(t.Context(), "photos/a/320.jpg", 100); err != nil || string(got) != "kept" {
		t.Errorf("Get: %q, error %v", got, err)
	}
	if err := s.Delete(t.Context(), "quarantine/most"); err != nil {
		t.Errorf("Delete: %v", err)
	}
	put(t, s, "quarantine/large", "small")
}
