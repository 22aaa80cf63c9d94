package client_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cityconnect/cityconnect/platform/client"
)

// Insist waits for what is away, and for nothing else.
func TestInsist(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		answers []int // the last one stays
		status  int   // of the error; 0 is none
		asked   int
	}{
		{"away at first", []int{http.StatusServiceUnavailable, http.StatusCreated}, 0, 2},
		{"refused", []int{http.StatusBadRequest, http.StatusCreated}, http.StatusBadRequest, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.answers[min(asked, len(tt.answers)-1)])
				asked++
			}))
			defer server.Close()
			err := client.New(server.URL).Insist(t.Context(), http.MethodPost, "/admin/webhooks", nil, nil)
			if client.StatusOf(err) != tt.status || err != nil && tt.status == 0 || asked != tt.asked {
				t.Errorf("asked %d times, and then %v; want %d times and status %d", asked, err, tt.asked, tt.status)
			}
		})
	}
}
