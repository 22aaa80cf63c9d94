package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/deadletter"
)

// A note on a group is shown with it and with its letters; who writes on another version
// is answered 412.
func TestNotesOnGroups(t *testing.T) {
	t.Parallel()
	c := newConsole(t, auth.Operator)
	err := c.Letters.Archive(t.Context(), []deadletter.Letter{{
		Queue: "q", MessageID: "m", Type: "t", Body: []byte(`{}`), Headers: []byte(`{}`), Class: "permanent", Error: "no such thing", Group: "no such thing",
		FirstFailedAt: time.Now(), FailedAt: time.Now(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/admin/dlq/groups/note?queue=q&error_class=permanent&error_group=no+such+thing"
	var note notificationapi.DeadLetterNote
	c.ask("PUT", path, `{"text":"wait until Monday"}`, `"0"`, http.StatusOK, &note)
	if note.Text != "wait until Monday" || note.Author != "operator-1" {
		t.Errorf("the note is %+v", note)
	}
	var groups notificationapi.DeadLetterGroups
	c.call("GET", "/admin/dlq/groups", "", http.StatusOK, &groups)
	var page notificationapi.DeadLetterPage
	c.call("GET", "/admin/dlq/messages", "", http.StatusOK, &page)
	if groups.Items[0].Note.Text != note.Text || page.Items[0].Note.Text != note.Text {
		t.Errorf("group %+v and letter %+v, want the note with both", groups.Items[0], page.Items[0])
	}
	c.ask("PUT", path, `{"text":"mine"}`, `"0"`, http.StatusPreconditionFailed, nil)
	c.ask("PUT", path, `{"text":" "}`, `"0"`, http.StatusBadRequest, nil)
	c.ask("PUT", path, `{"text":"mine"}`, "", http.StatusBadRequest, nil)
	c.ask("PUT", strings.Replace(path, "thing", "cause", 1), `{"text":"mine"}`, `"0"`, http.StatusNotFound, nil)
	c.ask("DELETE", path, "", fmt.Sprintf(`"%d"`, note.Version+1), http.StatusPreconditionFailed, nil)
	c.ask("DELETE", path, "", fmt.Sprintf(`"%d"`, note.Version), http.StatusNoContent, nil)
}
