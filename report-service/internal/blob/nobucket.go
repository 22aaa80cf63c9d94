//go:build nobucket

package blob

import (
	"errors"
	"net/url"
)

// openBucket refuses every bucket. The native stack builds the programs so unless its
// photos are in one: the client of S3 servers is a twelfth of a first build.
func openBucket(*url.URL, string, string) (Store, error) {
	return nil, errors.New("this program was built without buckets (tag nobucket)")
}
