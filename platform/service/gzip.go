package service

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
)

// Gzip returns body for gzip, or nil if that is not smaller. It is for answers that are
// kept, so that no gateway has to compress them each time.
func Gzip(body []byte) []byte {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	if packed.Len() >= len(body) {
		return nil
	}
	return packed.Bytes()
}

// AcceptsGzip reports whether the client reads what Gzip returns.
func AcceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if coding == "gzip" {
			return !strings.HasPrefix(strings.ReplaceAll(weight, " ", ""), "q=0") || strings.ContainsAny(weight, "123456789")
		}
	}
	return false
}
