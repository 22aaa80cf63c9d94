package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	r3labs "github.com/r3labs/sse/v2"
)

// serveR3labs serves r3labs/sse as its documentation has it, under the paths of
// our hub, until ctx ends.
func serveR3labs(ctx context.Context, addr string) error {
	events := r3labs.New()
	events.AutoReplay = false
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		topic := r.PathValue("topic")
		events.CreateStream(topic) // or returns the one that there is
		r.URL.RawQuery = "stream=" + topic
		events.ServeHTTP(w, r)
	})
	mux.HandleFunc("POST /pub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		events.Publish(r.PathValue("topic"), &r3labs.Event{Data: body})
	})
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // the process ends anyway
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
