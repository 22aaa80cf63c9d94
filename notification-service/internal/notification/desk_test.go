package notification_test

import (
	"slices"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

// A stream of departments has what is about one of them, and about none; the stream of
// the whole city and those of people are others.
func TestDeskStreams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		stream     notification.Stream
		department string
		want       bool
	}{
		{notification.DeskStream("parks roads"), "roads", true},
		{notification.DeskStream("parks roads"), "", true},
		{notification.DeskStream("parks roads"), "road", false},
		{notification.DeskStream("parks roads"), "parks roads", false},
		{notification.Officials, "roads", false},
		{notification.UserStream("roads"), "roads", false},
	} {
		if got := tt.stream.Has(tt.department); got != tt.want {
			t.Errorf("%s has %q: %t, want %t", tt.stream, tt.department, got, tt.want)
		}
	}
	olga := notification.Reader{UserID: "olga", Official: true, Departments: "parks roads"}
	if got, want := olga.Streams(), []notification.Stream{"user:olga", "role:official:parks roads"}; !slices.Equal(got, want) {
		t.Errorf("streams %q, want %q", got, want)
	}
	olga.Official = false
	if got := olga.Streams(); len(got) != 1 {
		t.Errorf("streams %q of a resident, want their own", got)
	}
}
