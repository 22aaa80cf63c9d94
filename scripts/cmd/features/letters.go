package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// A dead is a dead letter as the operators' API shows it.
type dead struct {
	ID      int64
	State   string
	Queue   string
	Error   string
	Class   string `json:"error_class"`
	Body    json.RawMessage
	Headers map[string]any
}

// deadLetter breaks a message, finds it, mends it and replays it.
func (w *walk) deadLetter(ctx context.Context) error {
	good := newLetter()
	bad := good
	bad.body = []byte(strings.Replace(string(good.body), `"category_name":"Other"`, `"category_name":""`, 1))
	if err := w.publish(ctx, w.topology.Exchange(), string(event.ReportCreatedKey), bad); err != nil {
		return err
	}
	found, err := w.find(ctx, bad.id)
	if err != nil {
		return err
	}
	w.say("a message without its category is dead letter %d of %s", found.ID, found.Queue)
	w.say("  class %s: %s", found.Class, found.Error)
	for _, name := range []string{"x-original-queue", "x-original-exchange", "x-original-routing-key", "x-final-retry-count", "x-failed-at"} {
		w.say("  %s: %v", name, found.Headers[name])
	}
	path := fmt.Sprintf("/admin/dlq/messages/%d", found.ID)
	var edited struct {
		ID      int64
		Changes []struct {
			Field         string
			Before, After json.RawMessage
		}
	}
	if err := w.operator.Do(ctx, http.MethodPost, path+"/edit", map[string]any{"body": json.RawMessage(good.body)}, &edited); err != nil {
		return err
	}
	for _, c := range edited.Changes {
		w.say("an operator edits %s from %s to %s: dead letter %d takes its place", c.Field, c.Before, c.After, edited.ID)
	}
	return w.replay(ctx, edited.ID, good)
}

// find waits until the message id lies among the dead letters of the notifications.
// Where a webhook is registered, it is one of queue.webhooks as well.
func (w *walk) find(ctx context.Context, id string) (found dead, err error) {
	err = wait.Until(ctx, patience, "dead letter", func(ctx context.Context) (bool, error) {
		var list struct{ Items []dead }
		err := w.operator.Do(ctx, http.MethodGet, "/admin/dlq/messages?message_id="+id, nil, &list)
		for _, d := range list.Items {
			if d.Queue == w.topology.Queue(event.ReportCreatedKey) { // queue.webhooks has another one, where it is bound
				found = d
			}
		}
		return found.ID != 0, err
	})
	return found, err
}

// replay sends the dead letter again and waits for its effect.
func (w *walk) replay(ctx context.Context, id int64, l letter) error {
	path := fmt.Sprintf("/admin/dlq/messages/%d", id)
	if err := w.operator.Do(ctx, http.MethodPost, path+"/replay", nil, nil); err != nil {
		return err
	}
	err := w.operator.Do(ctx, http.MethodPost, path+"/replay", nil, nil)
	w.say("replayed; a second click answers: %v", err)
	if err := w.told(ctx, l, 1); err != nil {
		return err
	}
	return wait.Until(ctx, patience, "resolution", func(ctx context.Context) (bool, error) {
		var now dead
		if err := w.operator.Do(ctx, http.MethodGet, path, nil, &now); err != nil {
			return false, err
		}
		if now.State == "resolved" {
			w.say("the officials were notified, and dead letter %d is %s in the same transaction", id, now.State)
		}
		return now.State == "resolved", nil
	})
}
