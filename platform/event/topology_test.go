package event_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/event"
)

// The names are a contract with what exists at brokers.
func TestNames(t *testing.T) {
	t.Parallel()
	city, err := event.NewTopology("bandung.")
	if err != nil {
		t.Fatal(err)
	}
	var plain event.Topology
	queue := plain.Queue(event.StatusUpdatedKey)
	for _, tt := range []struct{ got, want string }{
		{plain.Exchange(), "cityconnect.notifications"},
		{plain.DeadLetterExchange(), "cityconnect.notifications.dlx"},
		{plain.LiveExchange(), "cityconnect.live"},
		{plain.WakeExchange(), "cityconnect.wake"},
		{plain.ProgressExchange(), "cityconnect.progress"},
		{plain.OutboxExchange(), "cityconnect.outbox"},
		{plain.Gate(), "queue.gate"},
		{plain.Retry("5s"), "cityconnect.retry.5s"},
		{queue, "queue.status_updates"},
		{plain.Queue(event.ReportCreatedKey), "queue.report_created"},
		{plain.Queue(event.VoteReceivedKey), "queue.vote_received"},
		{plain.Queue(event.ReportOverdueKey), "queue.overdue"},
		{plain.Queue(event.ModeratedKey), "queue.moderation"},
		{plain.Queue(event.CorrectedKey), "queue.corrections"},
		{plain.Queue(event.DisputedKey), "queue.disputes"},
		{plain.Queue(event.CommentedKey), "queue.comments"},
		{plain.Queue(event.PhotoReadyKey), "queue.photo_results"},
		{plain.Queue(event.PhotoRefusedKey), "queue.photo_results"},
		{plain.Queue(event.PhotoUploadedKey), "queue.photo_checks"},
		{plain.DeadLetterQueue(queue), "queue.status_updates.dlq"},
		{plain.DeadLetterKey(queue), "dlq.queue.status_updates"},
		{city.Exchange(), "bandung.cityconnect.notifications"},
		{city.Queue(event.VoteReceivedKey), "bandung.queue.vote_received"},
		{city.Gate(), "bandung.queue.gate"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestPrefixIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"bandung", ".", "Bandung.", "a.b.", "#.", "a*."} {
		if _, err := event.NewTopology(bad); err == nil {
			t.Errorf("NewTopology(%q) succeeded", bad)
		}
	}
}

// The AsyncAPI document names every key, queue and the exchange.
func TestAsyncAPINamesEverything(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var plain event.Topology
	want := []string{"name: " + plain.Exchange(), event.RecipientHeader + ":", event.TraceHeader + ":"}
	for _, key := range event.AllKeys() {
		want = append(want, "address: "+string(key)+"\n", "address: "+plain.Queue(key)+"\n")
	}
	for _, line := range want {
		if !strings.Contains(string(document), line) {
			t.Errorf("docs/asyncapi.yaml: no %q", strings.TrimSpace(line))
		}
	}
}
