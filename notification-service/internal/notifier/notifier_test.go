package notifier_test

import (
	"testing"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/notifier"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
)

const queue = "queue.vote_received"

// announced counts what is announced.
type announced struct{ notifications, feed int }

func (a *announced) Announce(b notification.Batch) {
	a.notifications += len(b.Notifications)
	a.feed += len(b.Feed)
}

func newKeyring(t *testing.T) *event.Keyring {
	t.Helper()
	keyring, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	return keyring
}

func vote(headers amqp.Table, report uuid.UUID) consumer.Message {
	return consumer.Message{ID: uuid.NewString(), Headers: headers, Event: &event.VoteReceived{
		Subject: event.Subject{ReportID: report, ReportVersion: 2, ReportTitle: "Pothole", Timestamp: 1}, VoteType: event.Upvote,
	}}
}

// The recipient is sealed in a header, and nowhere else: without it a message is
// refused permanently.
func TestReadWantsARecipient(t *testing.T) {
	t.Parallel()
	keyring := newKeyring(t)
	n := notifier.New(nil, nil, keyring)
	report := uuid.New()
	sealed := keyring.Seal(report, "ann")
	for _, tt := range []struct {
		name    string
		headers amqp.Table
		want    string
	}{
		{"sealed", amqp.Table{event.RecipientHeader: sealed}, ""},
		{"sealed, as bytes", amqp.Table{event.RecipientHeader: []byte(sealed)}, ""},
		{"none", nil, "recipient header is missing"},
		{"a number", amqp.Table{event.RecipientHeader: int32(7)}, "recipient header is not a string"},
		{"forged", amqp.Table{event.RecipientHeader: "v1.secret-canary.AAAA"}, "recipient does not open"},
		{"of another report", amqp.Table{event.RecipientHeader: keyring.Seal(uuid.New(), "ann")}, "recipient does not open"},
	} {
		value, err := n.Read(vote(tt.headers, report))
		if tt.want != "" {
			if err == nil || err.Error() != tt.want || failure.Classify(err) != failure.Permanent {
				t.Errorf("%s: error %v, want the permanent %q", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if drafts := value.Drafts; len(drafts) != 1 || drafts[0].Stream != notification.UserStream("ann") {
			t.Errorf("%s: drafts %+v, want one for ann", tt.name, drafts)
		}
	}
}

// Committed notifications are announced; a message that had its effect before is not.
func TestApplyAnnouncesOnce(t *testing.T) {
	t.Parallel()
	keyring, heard := newKeyring(t), new(announced)
	n := notifier.New(postgres.New(pgtest.Notification(t), postgres.Options{}).Effects, heard, keyring)
	report := uuid.New()
	m := vote(amqp.Table{event.RecipientHeader: keyring.Seal(report, "ann")}, report)
	effect, err := n.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{0, 1} {
		seen, err := n.Apply(t.Context(), queue, []postgres.Message{{ID: m.ID, Value: effect}})
		if err != nil || seen != want {
			t.Errorf("%d seen (error %v), want %d", seen, err, want)
		}
	}
	if heard.notifications != 1 || heard.feed != 1 {
		t.Errorf("%d notifications and %d feed events are announced, want one of each", heard.notifications, heard.feed)
	}
}
