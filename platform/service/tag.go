package service

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// Tag returns a strong entity tag of what identifies an answer.
func Tag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// AnsweredBefore sets the headers of an answer that a cache may keep and has to ask for
// before each use, and answers with 304 if the client has the one with this tag: it is
// among those of If-None-Match, by the weak comparison of RFC 9110, section 13.1.2.
func AnsweredBefore(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", tag)
	tag = strings.TrimPrefix(tag, "W/")
	for _, known := range strings.Split(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == tag || known == "*" {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}
