package email

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
)

const (
	// relayPause is after which time a mail is tried again that the city's mail
	// server did not accept. Until then nothing else is claimed, see Sender.Lanes.
	relayPause = 30 * time.Second
	// uncertainPause is how long a server has to notice that it has a mail before
	// it gets the same one again: most drop it then by its Message-ID.
	uncertainPause = 10 * time.Minute
)

// Classes of answers, for metrics and the operators' log.
const (
	classRelay     = "relay"      // the city's mail server refuses the connection
	classBroken    = "connection" // the connection broke before the mail was whole
	classThrottled = "throttled"  // the host asks for fewer
	classDeferred  = "deferred"   // temporarily, for another reason
	classFull      = "full"       // mailbox full, or message too large for the space left
	classPolicy    = "policy"     // the city's mails are not trusted, or its mail server's are not
	classAddress   = "address"    // there is no such mailbox
	classRefused   = "refused"    // permanently, for any other reason
	classStopped   = "stopped"    // this process ends
)

// answerOf returns the answer to how Relay.Deliver ended. hard says that the address
// accepts no more mail.
//
//	accepted                            delivered
//	not connected                       unsent: no mail is at fault
//	broken off before the final dot     failed: sent again by the schedule
//	broken off after it                 postponed for ten minutes, once
//	421, 450, 451, 452, 454 with 4.7.x  throttled: the lane slows down, no attempt
//	other 4xx                           failed: sent again by the schedule
//	5.2.2, 5.3.4, 552                   postponed by the schedule: the mailbox is full
//	5.7.x, 5xx to MAIL FROM             postponed, once: operators have to act
//	5.1.x, 5.2.1, 550, 551, 553 to RCPT refused, and the address accepts no more mail
//	other 5xx                           refused
//
// The code (RFC 5321 section 4.2.1, RFC 3463) and the command that it answers decide
// whether a failure lasts. The text, which may quote the address, goes nowhere.
func answerOf(ctx context.Context, err error, d *ledger.Delivery) (a ledger.Answer, hard bool) {
	if err == nil {
		return ledger.Answer{Verdict: ledger.Delivered, Class: "2xx", Status: 250}, false
	}
	if errors.Is(err, errRelay) {
		if errors.Is(ctx.Err(), context.Canceled) {
			return ledger.Answer{Verdict: ledger.Unsent, Class: classStopped}, false
		}
		return ledger.Answer{Verdict: ledger.Unsent, After: relayPause, Class: classRelay, Error: errRelay.Error()}, false
	}
	failed, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return ledger.Answer{Verdict: ledger.Failed, Class: classBroken, Error: "the mail could not be sent"}, false
	}
	code, enhanced := failed.ErrorCode(), failed.EnhancedStatusCode()
	a = ledger.Answer{Status: code, Error: told(code, enhanced, failed.Reason)}
	if code == 0 {
		return broken(ctx, a, failed.Reason, d), false
	}
	class := func(verdict ledger.Verdict, class string) ledger.Answer {
		a.Verdict, a.Class = verdict, class
		return a
	}
	undefined := enhanced == "" || enhanced == "5.0.0" // the code is all that there is
	switch recipient := failed.Reason == gomail.ErrSMTPRcptTo; {
	case code < 500 && strings.HasPrefix(enhanced, "4.7."):
		return class(ledger.Throttled, classThrottled), false
	case code < 500:
		return class(ledger.Failed, classDeferred), false
	case enhanced == "5.2.2", enhanced == "5.3.4", undefined && code == 552:
		return class(ledger.Postponed, classFull), false
	case strings.HasPrefix(enhanced, "5.7."), failed.Reason == gomail.ErrSMTPMailFrom:
		if d.Retries > 0 {
			return class(ledger.Refused, classPolicy), false
		}
		return class(ledger.Postponed, classPolicy), false
	case strings.HasPrefix(enhanced, "5.1."), enhanced == "5.2.1",
		undefined && recipient && (code == 550 || code == 551 || code == 553):
		return class(ledger.Refused, classAddress), true
	}
	return class(ledger.Refused, classRefused), false
}

// broken returns the answer to a connection that broke, or to a reply that did not
// arrive in time. Without the final dot no server keeps a mail (RFC 5321
// section 4.1.1.4); after it, none can tell whether it does (RFC 1047).
func broken(ctx context.Context, a ledger.Answer, reason gomail.SendErrReason, d *ledger.Delivery) ledger.Answer {
	switch {
	case reason == gomail.ErrSMTPDataClose:
		a.Class, a.After = ledger.ClassUncertain, uncertainPause
		if a.Verdict = ledger.Postponed; d.Uncertain {
			a.Verdict = ledger.Refused
		}
	case reason == gomail.ErrGetSender, reason == gomail.ErrGetRcpts:
		a.Verdict, a.Class = ledger.Refused, classRefused
	case errors.Is(ctx.Err(), context.Canceled):
		a.Verdict, a.Class = ledger.Unsent, classStopped
	default:
		a.Verdict, a.Class = ledger.Failed, classBroken
	}
	return a
}

// told names the failure for operators, without a word of the server's.
func told(code int, enhanced string, reason gomail.SendErrReason) string {
	at := map[gomail.SendErrReason]string{
		gomail.ErrSMTPMailFrom: "MAIL FROM", gomail.ErrSMTPRcptTo: "RCPT TO", gomail.ErrSMTPData: "DATA",
		gomail.ErrWriteContent: "the text", gomail.ErrSMTPDataClose: "the end of the text",
	}[reason]
	switch {
	case at == "":
		return "the mail could not be sent"
	case code == 0:
		return "no answer to " + at
	case enhanced == "":
		return fmt.Sprintf("%d to %s", code, at)
	}
	return fmt.Sprintf("%d %s to %s", code, enhanced, at)
}
