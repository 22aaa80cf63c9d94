// Package blob keeps files under keys: in a folder, or in a bucket of a server
// that speaks the S3 protocol.
//
// It promises that a key has a whole file or none, whenever a process or a
// machine dies, and that a file stays once its Put has returned.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"path/filepath"
	"regexp"
	"time"
)

// A Store keeps files. Its methods may be called at the same time.
type Store interface {
	// Put stores the bytes of r, up to its end, under key, and replaces an
	// earlier file. Size is their number, or -1 if that is not known. If r
	// fails, or has another number of bytes, nothing is stored.
	Put(ctx context.Context, key string, r io.Reader, size int64) error
	// Get returns the file under key, or ErrNotFound. A file larger than limit
	// bytes is an error.
	Get(ctx context.Context, key string, limit int64) ([]byte, error)
	// Delete removes the file under key, if there is one.
	Delete(ctx context.Context, key string) error
	// List yields the files whose keys begin with prefix, which ends in a
	// slash. After an error it ends.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Check returns nil if files can be stored now, and otherwise why not.
	Check(ctx context.Context) error
}

// An Object is a file as List finds it.
type Object struct {
	Key        string
	ModifiedAt time.Time
}

// The errors of a Store, besides those of the network and the disk.
var (
	ErrNotFound = errors.New("there is no such file")
	ErrFull     = errors.New("the storage is full")
)

var errTooLarge = errors.New("the file is larger than expected")

// A Config says where files are stored.
type Config struct {
	URL string
	// For the S3 server; without them the machine's own role is used.
	AccessKey, SecretKey string
}

// Example shows what a URL looks like.
const Example = "file:///var/lib/cityconnect/photos or s3://photos?endpoint=https://s3.example.org&region=eu-central-1"

// Open returns the store at cfg.URL: file:///folder, or
// s3://bucket?endpoint=https://host:port&region=name. A folder is made; a
// bucket must exist, which only Check verifies.
func Open(cfg Config) (Store, error) {
	if !ValidURL(cfg.URL) {
		return nil, fmt.Errorf("the address of the storage must be %s", Example)
	}
	u, _ := url.Parse(cfg.URL) // valid
	if u.Scheme == "file" {
		return openFolder(u.Path)
	}
	return openBucket(u, cfg.AccessKey, cfg.SecretKey)
}

// ValidURL reports whether Open understands a URL.
func ValidURL(rawURL string) bool {
	u, err := url.Parse(rawURL)
	if err != nil || u.User != nil {
		return false
	}
	switch u.Scheme {
	case "file":
		return u.Host == "" && filepath.IsAbs(u.Path) && u.RawQuery == ""
	case "s3":
		endpoint, err := url.Parse(u.Query().Get("endpoint"))
		return err == nil && u.Host != "" && (u.Path == "" || u.Path == "/") &&
			endpoint.Host != "" && (endpoint.Scheme == "http" || endpoint.Scheme == "https")
	}
	return false
}

// IsFolder reports whether the files at url are in a folder of this machine,
// which other replicas see only if it is shared.
func IsFolder(rawURL string) bool {
	u, err := url.Parse(rawURL)
	return err == nil && u.Scheme == "file"
}

// keyPattern allows names that every file system and every server takes
// unchanged.
var keyPattern = regexp.MustCompile(`^[a-z0-9-]+(/[a-z0-9-]+)*(\.[a-z0-9]+)?$`)

// checkKey returns an error for a malformed key: keys are made by the program
// and never by a request.
func checkKey(key string) error {
	if !keyPattern.MatchString(key) {
		return fmt.Errorf("key %q: must be lower-case words joined by slashes", key)
	}
	return nil
}

// readAll reads up to limit bytes; more are an error.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errTooLarge
	}
	return data, err
}
