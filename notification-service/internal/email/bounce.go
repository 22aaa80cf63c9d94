package email

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"regexp"
	"strings"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/textproto"
)

// MaxBounce is how much of a bounce is read. Only the headers of our mail are needed;
// some servers send back all of it.
const MaxBounce = 64 << 10

// Complaint stands in place of a code for a reader who called our mail spam, which is no
// fault of a server.
const Complaint = "complaint"

// undefinedStatus is "other or undefined status" (RFC 3463 section 3.1).
const undefinedStatus = "5.0.0"

// bounceUser is what the addresses of bounces begin with; the delivery's token
// follows.
const bounceUser = "bounce+"

// A Bounce is what a mail server found out after it had taken a mail.
type Bounce struct {
	Delivery int64
	Code     string // an enhanced status code (RFC 3463) such as 5.1.1, or "complaint"
	Hard     bool   // the address accepts no more mail
}

// Complaint reports whether the reader called the mail spam.
func (b Bounce) Complaint() bool { return b.Code == Complaint }

// ErrNoBounce says that a message is not a bounce of ours: an automatic answer of
// somebody on holiday, a notice that a mail is late, or a forgery.
var ErrNoBounce = errors.New("not a bounce of a mail of ours")

var (
	// statusPattern is an enhanced status code (RFC 3463 section 2).
	statusPattern = regexp.MustCompile(`\b[245]\.\d{1,3}\.\d{1,3}\b`)
	// diagnosticPattern takes one behind a server's reply, in the words of
	// another, or behind a number sign: an address of a host looks like one, too.
	diagnosticPattern = regexp.MustCompile(`\b[245]\d\d[ #-]+([245]\.\d{1,3}\.\d{1,3})\b|#([245]\.\d{1,3}\.\d{1,3})\b`)
	// tokenPattern is where a delivery's token stands: in the address of the
	// bounce, which is the sender of the mail, and in its Message-ID.
	tokenPattern = regexp.MustCompile(`(?i)(?:\bbounce\+|<)([a-z2-7]{26})@`)
)

// Words in which servers without enhanced codes, and those that give none for the
// reason, say it.
var (
	unknownWords = regexp.MustCompile(`(?i)user unknown|unknown (user|recipient|local.part)|no such (user|recipient|mailbox|address)|no mailbox here by that name|` +
		`(user|recipient|mailbox|account|address)( \S+)? (does not exist|doesn't exist|not found|not known)|unrouteable address`)
	fullWords  = regexp.MustCompile(`(?i)quota exceeded|(over|exceed\w*)( \w+){0,3} quota|(mailbox|inbox)( \S+)? (is |was )?full`)
	rateWords  = regexp.MustCompile(`(?i)receiving (mail|messages) (at a rate|too quickly)|too many messages|rate limit`)
	lateWords  = regexp.MustCompile(`(?i)warning message only|has not (yet )?been delivered|will (be retried|continue to (try|be attempted))|still trying|delayed`)
	finalWords = regexp.MustCompile(`(?i)permanent(ly)? (fatal )?(error|failure)|given up|could not be delivered|undeliverable|not delivered|fatal errors`)
	// copyPattern is where old servers begin with the mail itself.
	copyPattern = regexp.MustCompile(`(?im)^-+ *(below this line is a copy|this is a copy of|original message|unsent message|message header|returned message)|^(return-path|received|message-id|date|from|subject):`)
)

// ParseBounce reads a message that came to the address of bounces: a delivery
// status notification (RFC 3464), what servers wrote before there were any, or a
// complaint (RFC 5965). The error is ErrNoBounce, or says that it is not a message at
// all. The kind of the message decides, then the code in it, then its words.
//
// The sender of a bounce cannot be trusted. But the token in it cannot be made up,
// and was only in the mail.
func (k *Keys) ParseBounce(raw io.Reader) (Bounce, error) {
	mail, err := io.ReadAll(io.LimitReader(raw, MaxBounce))
	if err != nil {
		return Bounce{}, fmt.Errorf("read bounce: %w", err)
	}
	b := Bounce{Delivery: k.deliveryIn(mail)}
	root := readMail(mail)
	if root == nil || b.Delivery == 0 {
		return Bounce{}, ErrNoBounce
	}
	left := maxReportParts
	switch part, kind := findReport(root, 0, &left); {
	case kind == feedbackKind:
		// Other types report a failed signature, a mail that is not spam, and the like.
		fields, _ := textproto.ReadHeader(bufio.NewReader(part.Body))
		if !strings.EqualFold(value(fields.Get("Feedback-Type")), "abuse") {
			return Bounce{}, ErrNoBounce
		}
		b.Code = Complaint
	case part != nil:
		b.Code = codeOfStatus(part.Body)
	case fromServer(root):
		b.Code = codeOfText(root.Body)
	}
	if b.Code == "" {
		return Bounce{}, ErrNoBounce
	}
	b.Hard = b.Complaint() || proves(b.Code)
	return b, nil
}

// codeOfStatus returns the code with which a mail failed for good, or nothing if the
// fields do not say that it did.
func codeOfStatus(status io.Reader) (code string) {
	lines := bufio.NewReader(status)
	for {
		if _, err := lines.Peek(1); err != nil {
			return "" // all is read, or the rest is cut off or cannot be decoded
		}
		// The fields up to an empty line are about one recipient. Those before a line
		// that is not a field count, too.
		recipient, _ := textproto.ReadHeader(lines)
		action, code := value(recipient.Get("Action")), statusPattern.FindString(recipient.Get("Status"))
		if !strings.EqualFold(action, "failed") && (action != "" || !strings.HasPrefix(code, "5")) {
			continue // it is late, or has arrived; or these are the fields about the mail
		}
		told := recipient.Get("Diagnostic-Code")
		if code == "" || code == undefinedStatus { // as Exim says of everything; the remote server's answer is behind that
			code = codeOfWords(told)
		}
		return asMeant(code, told)
	}
}

// codeOfText is codeOfStatus for what old servers write for people to read.
func codeOfText(body io.Reader) string {
	read, _ := io.ReadAll(body) // what can be decoded
	text := string(read)
	if copied := copyPattern.FindStringIndex(text); copied != nil {
		text = text[:copied[0]]
	}
	text = strings.Join(strings.Fields(text), " ")
	if lateWords.MatchString(text) || !finalWords.MatchString(text) {
		return ""
	}
	return asMeant(codeOfWords(text), text)
}

// codeOfWords returns the code that a server's words have, or stand for.
func codeOfWords(told string) string {
	if match := diagnosticPattern.FindStringSubmatch(told); match != nil {
		return cmp.Or(match[1], match[2])
	}
	switch {
	case rateWords.MatchString(told): // whatever else they say
	case fullWords.MatchString(told):
		return "5.2.2"
	case unknownWords.MatchString(told):
		return "5.1.1"
	}
	return undefinedStatus
}

// asMeant returns code, or that of congestion where a server calls a mailbox disabled
// which gets too much at once. That is not held against the address, however often.
func asMeant(code, told string) string {
	if code == "5.2.1" && rateWords.MatchString(told) {
		return "4.4.5"
	}
	return code
}

// value returns the value of a field of a report without the comments, which it may
// have in parentheses.
func value(field string) string {
	field, _, _ = strings.Cut(field, "(")
	return strings.TrimSpace(field)
}

// fromServer reports whether a mail says that a mail server wrote it. People's automatic
// answers say that they are theirs.
func fromServer(mail *message.Entity) bool {
	from := strings.ToLower(mail.Header.Get("From"))
	return strings.Contains(from, "mailer-daemon") || strings.Contains(from, "postmaster")
}

// readMail returns a mail, of which only the header has been read, or nil.
func readMail(mail []byte) *message.Entity {
	// Programs that mails are piped into often get a line for a mailbox's file first.
	if bytes.HasPrefix(mail, []byte("From ")) {
		_, mail, _ = bytes.Cut(mail, []byte("\n"))
	}
	// The reader of parts expects the line end of the first boundary at all others.
	mail = bytes.ReplaceAll(mail, []byte("\r\n"), []byte("\n"))
	// An error beside a mail is about an encoding or a charset that is not known: of
	// texts for people, or of what then has no fields that could be read.
	root, _ := message.Read(bytes.NewReader(mail))
	return root
}

const (
	// maxReportParts is how many parts of a mail are read, broken ones included. A
	// report has three (RFC 6522, section 3).
	maxReportParts = 100
	// maxReportDepth is how deep a report may be inside of other parts, as where a
	// program has added a footer to the mail.
	maxReportDepth = 3

	feedbackKind = "message/feedback-report"
)

// findReport returns the first part of a mail that programs read, with its kind, or nil.
// It is the second part of a report, but not all servers keep to that. An original mail,
// which could itself be a report, is not searched. At most left parts are read.
func findReport(mail *message.Entity, depth int, left *int) (*message.Entity, string) {
	kind, _, _ := mime.ParseMediaType(mail.Header.Get("Content-Type")) // parameters do not matter
	switch kind {
	case "message/delivery-status", "message/global-delivery-status", feedbackKind:
		return mail, kind
	}
	parts := mail.MultipartReader()
	if parts == nil || depth > maxReportDepth {
		return nil, ""
	}
	defer parts.Close()
	// A part whose header cannot be read is skipped: after an error, NextPart goes on
	// at the next line. It has the same error for the end of a mail that was cut off
	// as for all others, so the number of calls is bounded. Of inner parts it may be that
	// of the end: the outer ones go on.
	for ; *left > 0; *left-- {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) || part == nil && depth > 0 {
			return nil, ""
		}
		if part == nil {
			continue
		}
		if found, kind := findReport(part, depth+1, left); found != nil {
			return found, kind
		}
	}
	return nil, ""
}

// deliveryIn returns the delivery that is named in a mail, or 0.
func (k *Keys) deliveryIn(mail []byte) int64 {
	for _, match := range tokenPattern.FindAllSubmatch(mail, -1) {
		if id, ok := k.Delivery(string(match[1])); ok {
			return id
		}
	}
	return 0
}
