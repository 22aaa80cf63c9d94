package email

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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
	// uncertainCodePause is the same for a code, which is of no use after ten
	// minutes: its reader asked for it, and waits.
	uncertainCodePause = time.Minute
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
	classUnclear   = "unclear"    // whose fault it is, the answer does not prove
	classRefused   = "refused"    // for what is in the mail, for good
	classStopped   = "stopped"    // this process ends
)

// answerOf returns the answer to how Relay.Deliver ended. hard says that the address
// accepts no more mail.
//
//	accepted                            delivered
//	not connected                       unsent: no mail is at fault
//	broken off before the final dot     failed: sent again by the schedule
//	broken off after it                 postponed for ten minutes (a code: one), once
//	421, 450, 451, 452, 454 with 4.7.x  throttled: the lane slows down, no attempt
//	other 4xx                           failed: sent again by the schedule
//	5.2.2, 5.3.4, 552                   postponed by the schedule: the mailbox is full
//	5.1.1, 5.1.6, 5.1.10, 5.2.1         refused, and the address no longer takes mail
//	5.6.x                               refused: it is about what is in the mail
//	5.1.7, 5.1.8, 5.7.x and the like,
//	5xx to MAIL FROM                    failed, class policy: operators have to act
//	other 5xx, and 5.2.1 with words
//	of too much mail at once            failed, class unclear
//
// Only a code that names the mailbox proves that the address is not valid. A city
// whose relay lost its login, whose DNS entry expired or whose server is on a list
// gets 550 to every recipient: such mails are late, and no address is lost. The
// circuit of the lane opens after a few.
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
	switch {
	case code < 500 && strings.HasPrefix(enhanced, "4.7."):
		return class(ledger.Throttled, classThrottled), false
	case code < 500:
		return class(ledger.Failed, classDeferred), false
	case enhanced == "5.2.2", enhanced == "5.3.4", undefined && code == 552:
		return class(ledger.Postponed, classFull), false
	case failed.Reason == gomail.ErrSMTPMailFrom:
		return class(ledger.Failed, classPolicy), false
	case proves(asMeant(enhanced, err.Error())):
		return class(ledger.Refused, classAddress), true
	case strings.HasPrefix(enhanced, "5.6."):
		return class(ledger.Refused, classRefused), false
	case OfSender(enhanced):
		return class(ledger.Failed, classPolicy), false
	}
	return class(ledger.Failed, classUnclear), false
}

// proves reports whether an enhanced status code says that the mailbox does not
// exist, has moved or is disabled, or that its domain takes no mail (RFC 3463
// sections 3.2 and 3.3, RFC 7505). Others in those sections are about the sender,
// or may be: 5.1.0 and 5.1.2 are also what a relay says whose DNS fails.
func proves(enhanced string) bool {
	switch enhanced {
	case "5.1.1", "5.1.6", "5.1.10", "5.2.1":
		return true
	}
	return false
}

// SenderCodes matches enhanced status codes that say nothing about the recipient:
// the sender's address, host, rights, reputation or quota, the protocol, the text,
// or the configuration of a server is at fault. PostgreSQL reads it, too.
const SenderCodes = `^[245]\.(1\.[789]|3\.[2345]|4\.[56]|5\.\d+|6\.\d+|7\.\d+)$`

var senderCodes = regexp.MustCompile(SenderCodes)

// OfSender reports whether an enhanced status code says nothing about the
// recipient.
func OfSender(enhanced string) bool { return senderCodes.MatchString(enhanced) }

// broken returns what follows from a connection that broke, or an answer that
// did not arrive in time. Without the final dot no server keeps a mail (RFC 5321
// section 4.1.1.4); after it, none can tell whether it does (RFC 1047).
func broken(ctx context.Context, a ledger.Answer, reason gomail.SendErrReason, d *ledger.Delivery) ledger.Answer {
	switch {
	case reason == gomail.ErrSMTPDataClose:
		a.Class, a.After = ledger.ClassUncertain, uncertainPause
		if d.Kind == Code {
			a.After = uncertainCodePause
		}
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
