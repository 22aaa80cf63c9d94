package consumer_test

import (
	"net/url"
	"strings"
	"testing"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A consumer to which the broker refuses its queue says so, and why, until it consumes.
func TestRefusedQueueIsUnhealthy(t *testing.T) {
	t.Parallel()
	queue := event.Topology{}.Queue(event.VoteReceivedKey)
	for _, tt := range []struct {
		name   string
		refuse func(t *testing.T, h *consumertest.Harness) (again func())
		cause  string
	}{
		{"another kind of queue", func(t *testing.T, h *consumertest.Harness) func() {
			ch := h.Channel()
			if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
			return func() {
				if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
					t.Error(err)
				}
			}
		}, "PRECONDITION_FAILED"},
		{"no right to read", func(t *testing.T, h *consumertest.Harness) func() {
			at, err := url.Parse(h.URL)
			if err != nil {
				t.Fatal(err)
			}
			management := rabbittest.Management(t, rabbittest.SharedManagementURL(t))
			readable := func(pattern string) {
				t.Helper()
				answer, err := management.UpdatePermissionsIn(strings.TrimPrefix(at.Path, "/"), at.User.Username(),
					rabbithole.Permissions{Configure: ".*", Write: ".*", Read: pattern})
				if err != nil || answer.StatusCode >= 300 {
					t.Fatalf("set permissions: %v", err)
				}
			}
			readable(`^(?!` + queue + `$).*`)
			return func() { readable(".*") }
		}, "ACCESS_REFUSED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := consumertest.New(t, pgtest.Notification(t))
			again := tt.refuse(t, h)
			c, _ := h.Start()
			h.Eventually("a refusal with its cause", func() string {
				err := c.Healthy()
				if err == nil {
					return "healthy"
				}
				if !strings.Contains(err.Error(), tt.cause) || !strings.Contains(err.Error(), queue) {
					return err.Error()
				}
				return ""
			})
			again()
			h.Eventually("health", func() string {
				if err := c.Healthy(); err != nil {
					return err.Error()
				}
				return ""
			})
			h.Publish(h.Votes(1, "ann")...)
			h.WaitEffects(1)
		})
	}
}
