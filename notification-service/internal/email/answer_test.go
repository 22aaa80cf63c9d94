package email

import (
	"testing"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
)

// The codes of RFC 3463 and of the list of RFC 5248 that say nothing about the
// recipient.
func TestCodesOfTheSender(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"5.1.7": true, "5.1.8": true, "5.1.9": true, "5.3.5": true, "5.4.5": true, "5.5.1": true, "5.7.1": true, "4.7.0": true, "5.7.26": true,
		"5.1.1": false, "5.1.0": false, "5.1.10": false, "5.2.1": false, "5.2.2": false, "5.4.1": false, "4.4.7": false, "5.0.0": false, "550": false, "": false,
	} {
		if got := OfSender(code); got != want {
			t.Errorf("%s is the sender's: %t, want %t", code, got, want)
		}
	}
}

// A code whose end was not answered is sent again while it is still of use; other
// mails when the server has had the time to notice that it has them.
func TestUncertainCode(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]time.Duration{Code: uncertainCodePause, Digest: uncertainPause} {
		d := &ledger.Delivery{Kind: kind}
		answer, hard := answerOf(t.Context(), &gomail.SendError{Reason: gomail.ErrSMTPDataClose}, d)
		if answer.Verdict != ledger.Postponed || answer.Class != ledger.ClassUncertain || answer.After != want || hard {
			t.Errorf("%s: %+v, want it postponed for %s", kind, answer, want)
		}
	}
	if uncertainCodePause >= CodeLifetime/2 {
		t.Errorf("a code is sent again after %s, and lives for %s", uncertainCodePause, CodeLifetime)
	}
}
