package drive

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

var errAway = errors.New("away")

// A fakeCity answers as CityConnect does, as far as a load test can tell, and
// spoils what it delivers in a way of its own. The load test itself is what
// is tested here; it meets the real stack in its runs.
type fakeCity struct {
	// spoil returns which of the notifications a screen is sent for the one
	// with this number: itself, usually.
	spoil func(number int) []int

	mu      sync.Mutex
	reports map[string]*fakeReport
	streams map[string]*fakeStream
}

type fakeReport struct {
	owner   string
	version int
}

type fakeStream struct {
	sent    []string // data by number
	changed chan struct{}
}

func newFakeCity(t *testing.T, spoil func(int) []int) string {
	t.Helper()
	f := &fakeCity{spoil: spoil, reports: make(map[string]*fakeReport), streams: make(map[string]*fakeStream)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /dev/token", f.token)
	mux.HandleFunc("GET /categories", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"categories":[{"id":1,"name":"Graffiti"},{"id":2,"name":"Other"}]}`)
	})
	mux.HandleFunc("POST /reports", f.create)
	mux.HandleFunc("POST /reports/{id}/vote", f.change)
	mux.HandleFunc("PATCH /reports/{id}/status", f.change)
	mux.HandleFunc("GET /notifications/stream", f.stream)
	mux.HandleFunc("GET /notifications", f.list)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// token has the user's name for a token.
func (f *fakeCity) token(w http.ResponseWriter, r *http.Request) {
	var in struct{ Role, Name string }
	_ = json.NewDecoder(r.Body).Decode(&in) // the client is ours
	fmt.Fprintf(w, `{"access_token":%q,"sub":%q}`, in.Role+":"+in.Name, in.Name)
}

func caller(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (f *fakeCity) create(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := uuid.NewString()
	f.reports[id] = &fakeReport{owner: caller(r), version: 1}
	f.notifyLocked("official", id, 1)
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":%q,"version":1}`, id)
}

func (f *fakeCity) change(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := r.PathValue("id")
	report := f.reports[id]
	report.version++
	f.notifyLocked(report.owner, id, report.version)
	fmt.Fprintf(w, `{"id":%q,"report_id":%q,"version":%d}`, id, id, report.version)
}

func (f *fakeCity) streamLocked(name string) *fakeStream {
	if strings.HasPrefix(name, "official") {
		name = "official"
	}
	s := f.streams[name]
	if s == nil {
		s = &fakeStream{changed: make(chan struct{})}
		f.streams[name] = s
	}
	return s
}

func (f *fakeCity) notifyLocked(name, report string, version int) {
	s := f.streamLocked(name)
	s.sent = append(s.sent, fmt.Sprintf(`{"report_id":%q,"report_version":%d,"created_at":"2026-01-01T00:00:00Z"}`, report, version))
	close(s.changed)
	s.changed = make(chan struct{})
}

func (f *fakeCity) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "event: ready\nid: v1.e.0\ndata: {}\n\n")
	for at := 0; ; {
		_ = http.NewResponseController(w).Flush()
		f.mu.Lock()
		s := f.streamLocked(caller(r))
		sent, changed := s.sent, s.changed
		f.mu.Unlock()
		for ; at < len(sent); at++ {
			for _, number := range f.spoil(at + 1) {
				fmt.Fprintf(w, "event: notification\nid: v1.e.%d\ndata: %s\n\n", number, sent[number-1])
			}
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fakeCity) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(w, `{"notifications":[%s]}`, strings.Join(f.streamLocked(caller(r)).sent, ","))
}
