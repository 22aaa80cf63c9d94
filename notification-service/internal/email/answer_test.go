package email_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
)

// The codes of RFC 3463 and the list of RFC 5248 that say nothing about the
// recipient.
func TestCodesOfTheSender(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"5.1.7": true, "5.1.8": true, "5.1.9": true, "5.3.5": true, "5.4.5": true, "5.5.1": true, "5.7.1": true, "4.7.0": true, "5.7.26": true,
		"5.1.1": false, "5.1.0": false, "5.1.10": false, "5.2.1": false, "5.2.2": false, "5.4.1": false, "4.4.7": false, "5.0.0": false, "550": false, "": false,
	} {
		if got := email.OfSender(code); got != want {
			t.Errorf("%s is the sender's: %t, want %t", code, got, want)
		}
	}
}
