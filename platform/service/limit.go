package service

import (
	"fmt"
	"net/http"
	"time"
)

// bodyTimeout ends the reading of a body that trickles in. The server has no
// such limit of its own, because it would also end the streams.
const bodyTimeout = 30 * time.Second

// BodyLimit refuses bodies above limit bytes: at once when the client says so
// beforehand, otherwise when the reading gets there.
func BodyLimit(limit int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > limit {
				w.Header().Set("Connection", "close") // rather than read it all
				WriteProblem(w, r, bodyTooLarge(limit))
				return
			}
			if r.ContentLength != 0 {
				// Without a connection behind it (in tests) there is no deadline.
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
				r.Body = http.MaxBytesReader(w, r.Body, limit)
			}
			next.ServeHTTP(w, r)
		})
	}
}

func bodyTooLarge(limit int64) Problem {
	return BodyTooLarge.New(fmt.Sprintf("the limit is %d bytes", limit))
}
