package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	r3labs "github.com/r3labs/sse/v2"
	gosse "github.com/tmaxmax/go-sse"
)

// servePeer serves one of the Go libraries as its documentation has it.
func servePeer(name, addr string) error {
	mux := http.NewServeMux()
	switch name {
	case "gosse":
		goSSE(mux)
	case "r3labs":
		r3(mux)
	default:
		return fmt.Errorf("no peer %q", name)
	}
	return http.ListenAndServe(addr, mux)
}

func goSSE(mux *http.ServeMux) {
	server := &gosse.Server{OnSession: func(_ http.ResponseWriter, r *http.Request) ([]string, bool) {
		return []string{r.PathValue("topic")}, true
	}}
	mux.HandleFunc("GET /sub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		// By itself it sends no header before the first event.
		w.Header().Set("Content-Type", "text/event-stream")
		if err := http.NewResponseController(w).Flush(); err == nil {
			server.ServeHTTP(w, r)
		}
	})
	mux.HandleFunc("POST /pub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			m := &gosse.Message{}
			m.AppendData(string(body))
			err = server.Publish(m, r.PathValue("topic"))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

func r3(mux *http.ServeMux) {
	server := r3labs.New()
	server.AutoReplay = false
	var once sync.Map
	mux.HandleFunc("GET /sub", func(w http.ResponseWriter, r *http.Request) {
		topic := r.URL.Query().Get("stream")
		if _, known := once.LoadOrStore(topic, true); !known {
			server.CreateStream(topic)
		}
		server.ServeHTTP(w, r)
	})
	mux.HandleFunc("POST /pub/{topic}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		server.Publish(r.PathValue("topic"), &r3labs.Event{Data: body})
	})
}
