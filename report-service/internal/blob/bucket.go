//go:build !nobucket

package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// bucketTries is how often a request is tried: callers have their own ways
	// to wait for a longer outage.
	bucketTries = 3
	// maxUnsized is how large a file of unknown size may be: it is collected
	// first, because S3 requires the size. It is above the largest photo.
	maxUnsized = 16 << 20
)

// A bucket is a bucket of an S3 server.
type bucket struct {
	client *minio.Client
	name   string
}

func openBucket(u *url.URL, accessKey, secretKey string) (*bucket, error) {
	query := u.Query()
	endpoint, _ := url.Parse(query.Get("endpoint")) // valid, see ValidURL
	keys := credentials.NewIAM("")
	if accessKey != "" {
		keys = credentials.NewStaticV4(accessKey, secretKey, "")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	transport.ResponseHeaderTimeout = 30 * time.Second
	transport.MaxIdleConnsPerHost = 32
	transport.DisableCompression = true // pictures are compressed already, and their sizes must not change
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: keys, Secure: endpoint.Scheme == "https", Region: query.Get("region"),
		Transport: transport, MaxRetries: bucketTries,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the storage: %w", err)
	}
	return &bucket{client, u.Host}, nil
}

func (b *bucket) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if size < 0 {
		data, err := readAll(r, maxUnsized)
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		r, size = bytes.NewReader(data), int64(len(data))
	}
	// After a failure, minio would send a reader that can seek again from its
	// start, even if it did not begin there.
	_, err := b.client.PutObject(ctx, b.name, key, struct{ io.Reader }{r}, size, minio.PutObjectOptions{
		ContentType: "application/octet-stream",
	})
	if err != nil {
		return fmt.Errorf("put object: %w", translate(err))
	}
	return nil
}

func (b *bucket) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	object, err := b.client.GetObject(ctx, b.name, key, minio.GetObjectOptions{}) // sends no request yet
	if err != nil {
		return nil, fmt.Errorf("get object: %w", translate(err))
	}
	defer object.Close()
	data, err := readAll(object, limit)
	if err != nil {
		return nil, fmt.Errorf("get object: %w", translate(err))
	}
	return data, nil
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := b.client.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{}); err != nil {
		if err = translate(err); !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("remove object: %w", err)
		}
	}
	return nil
}

func (b *bucket) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // when yield stops
		for object := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if object.Err != nil {
				yield(Object{}, fmt.Errorf("list objects: %w", translate(object.Err)))
				return
			}
			if !yield(Object{object.Key, object.LastModified}, nil) {
				return
			}
		}
	}
}

func (b *bucket) Check(ctx context.Context) error {
	found, err := b.client.BucketExists(ctx, b.name)
	if err != nil {
		return fmt.Errorf("look for the bucket: %w", translate(err))
	}
	if !found {
		return fmt.Errorf("there is no bucket %s", b.name)
	}
	return nil
}

// translate returns the errors of this package for the server's answers that
// mean the same.
func translate(err error) error {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	switch {
	case !ok:
		return err
	case answer.Code == minio.NoSuchKey:
		return ErrNotFound
	case answer.StatusCode == http.StatusInsufficientStorage, answer.Code == "QuotaExceeded", answer.Code == "XMinioStorageFull":
		return errors.Join(ErrFull, err)
	}
	return err
}
