package admin_test

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/story"
)

// The story of a message that became a dead letter ends with its effect once it was
// replayed, and names nobody.
func TestStoryOfAMessage(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	c.breakSome(1)
	var letters page[letter]
	c.call(http.MethodGet, "/admin/dlq/messages", "", http.StatusOK, &letters)
	dead := letters.Items[0]
	tell := func(id string) (kinds []notificationapi.StoryEntryKind) {
		var told notificationapi.MessageStory
		text := c.call(http.MethodGet, "/admin/messages/"+id+"/story", "", http.StatusOK, &told)
		for _, secret := range []string{"alice", "voter", "canary", "operator-1"} {
			if strings.Contains(text, secret) {
				t.Errorf("the story has %q: %s", secret, text)
			}
		}
		for _, e := range told.Entries {
			kinds = append(kinds, e.Kind)
			if e.Place != dead.Queue || e.Kind == notificationapi.StoryEntryKindDeadLettered && (e.Class != dead.Class || e.DeadLetterID != dead.ID || e.Attempts != 1) {
				t.Errorf("entry %+v, want one of dead letter %+v", e, dead)
			}
		}
		return kinds
	}
	if got := tell(dead.MessageID); !slices.Equal(got, []notificationapi.StoryEntryKind{notificationapi.StoryEntryKindDeadLettered}) {
		t.Errorf("a dead letter: %q", got)
	}
	vote := c.Vote("alice")
	c.Publish(vote)
	c.EventuallyEqual("effects", 1, func() int {
		return c.Count(`select count(*) from processed_messages where message_id = $1`, vote.ID)
	})
	if got := tell(vote.ID); !slices.Equal(got, []notificationapi.StoryEntryKind{notificationapi.StoryEntryKindHandled}) {
		t.Errorf("a message with its effect: %q", got)
	}
	for _, unknown := range []string{uuid.NewString(), "%00", "%ff", strings.Repeat("x", 255)} {
		if got := tell(unknown); len(got) != 0 {
			t.Errorf("%.20q, which is unknown: %q", unknown, got)
		}
	}
	c.call(http.MethodGet, "/admin/messages/"+vote.ID+"/story?report_id=7", "", http.StatusBadRequest, nil)
}

// Every kind of this service's entries is in the document.
func TestStoryKindsAreDocumented(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	_, schema, _ := strings.Cut(string(source), "\n    StoryEntry:\n")
	listed, _, _ := strings.Cut(schema, "        place:")
	ofTheOutbox := []story.Kind{story.Accepted, story.Requeued, story.Withdrawn, story.PublishDue, story.Published}
	for _, kind := range story.Kinds() {
		elsewhere := slices.Contains(ofTheOutbox, kind)
		if regexp.MustCompile(`\b`+string(kind)+`\b`).MatchString(listed) == elsewhere {
			t.Errorf("%s is listed: %t, want %t", kind, elsewhere, !elsewhere)
		}
	}
}
