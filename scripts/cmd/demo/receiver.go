package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

// maxEvent is more than any event has.
const maxEvent = 1 << 20

// A receiver is another system of the city, which gets every change. It does what
// docs/webhooks.md asks of one: it verifies each request with the library of Standard
// Webhooks, which is not ours, and recognises a repetition by its id.
type receiver struct {
	operator *client.Client
	server   *http.Server
	audit    *audit
	path     string // of the endpoint in the API

	registered chan struct{} // closed once verifier is there
	verifier   *standardwebhooks.Webhook

	mu       sync.Mutex
	known    map[string]bool // ids of events that were handled
	repeated int             // events that came again under their id
	refused  int             // requests that were not signed with our secret
}

// receive begins to receive at address, an address of this machine that the
// delivery worker can reach, and has an operator register it.
func receive(ctx context.Context, gateway *client.Client, address string, a *audit) (*receiver, error) {
	operator, err := gateway.SignIn(ctx, "Pavel", "operator", "")
	if err != nil {
		return nil, signInError(err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &receiver{operator: operator, audit: a, registered: make(chan struct{}), known: make(map[string]bool)}
	r.server = &http.Server{Handler: http.HandlerFunc(r.handle), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = r.server.Serve(listener) }() // until close

	var made struct {
		Webhook struct {
			ID uuid.UUID `json:"id"`
		} `json:"webhook"`
		Secret string `json:"secret"`
	}
	registration := map[string]any{"url": "http://" + listener.Addr().String() + "/events", "description": "The demo's other system"}
	if err := operator.Insist(ctx, http.MethodPost, "/admin/webhooks", registration, &made); err != nil {
		_ = r.server.Close()
		return nil, fmt.Errorf("register a webhook: %w", err)
	}
	r.path = "/admin/webhooks/" + made.Webhook.ID.String()
	if r.verifier, err = standardwebhooks.NewWebhook(made.Secret); err != nil {
		return nil, errors.Join(fmt.Errorf("the signing secret: %w", err), r.close())
	}
	close(r.registered)
	return r, nil
}

// handle takes one request.
func (r *receiver) handle(w http.ResponseWriter, req *http.Request) {
	<-r.registered
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxEvent))
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err := r.verifier.Verify(body, req.Header); err != nil {
		r.mu.Lock()
		r.refused++
		r.mu.Unlock()
		http.Error(w, "not signed with our secret", http.StatusUnauthorized)
		return
	}
	var event struct {
		Type string
		Data struct {
			ReportID      uuid.UUID `json:"report_id"`
			ReportVersion int64     `json:"report_version"`
		}
	}
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	id := req.Header.Get(standardwebhooks.HeaderWebhookID)
	known := r.known[id]
	r.known[id] = true
	if known {
		r.repeated++
	}
	r.mu.Unlock()
	if !known {
		r.audit.See(city.Sight{Report: event.Data.ReportID, Version: event.Data.ReportVersion, Screen: receiverScreen, Type: event.Type, Seen: time.Now()})
	}
	w.WriteHeader(http.StatusNoContent)
}

// close removes the endpoint and ends the receiver. It has a time of its own: the
// demo may have been stopped.
func (r *receiver) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := r.operator.Do(ctx, http.MethodDelete, r.path, nil, nil, "If-Match", "*")
	if closeErr := r.server.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("remove the webhook: %w", err)
	}
	return nil
}

// tell says what came, and returns an error if a request was not signed as it
// has to be.
func (r *receiver) tell(out io.Writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(out, "The other system verified %d events by their signature; %d of them came again under their id.\n", len(r.known), r.repeated)
	if r.refused > 0 {
		return fmt.Errorf("%d requests to the other system were not signed with its secret", r.refused)
	}
	return nil
}
