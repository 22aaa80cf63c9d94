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

// complaint stands in place of a code for a reader who called our mail spam.
const complaint = "complaint"

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
func (b Bounce) Complaint() bool { return b.Code == complaint }

// ErrNoBounce says that a message is not a bounce of ours: an automatic answer of
// somebody on holiday, a notice that a mail is late, or a forgery.
var ErrNoBounce = errors.New("not a bounce of a mail of ours")

var (
	// statusPattern is an enhanced status code (RFC 3463 section 2).
	statusPattern = regexp.MustCompile(`\b[245]\.\d{1,3}\.\d{1,3}\b`)
	// diagnosticPattern takes one behind a server's reply, in the words of
	// another: an address of a host looks like one, too.
	diagnosticPattern = regexp.MustCompile(`\b[245]\d\d[ #-]+([245]\.\d{1,3}\.\d{1,3})\b`)
	// tokenPattern is where a delivery's token stands: in the address of the
	// bounce, which is the sender of the mail, and in its Message-ID.
	tokenPattern = regexp.MustCompile(`(?i)(?:\bbounce\+|<)([a-z2-7]{26})@`)
)

// ParseBounce reads a message that came to the address of bounces: a delivery
// status notification (RFC 3464) or a complaint (RFC 5965). The error is
// ErrNoBounce, or says that it is not a message at all.
//
// The sender of a bounce cannot be trusted. But the token in it cannot be made up,
// and was only in the mail.
func (k *Keys) ParseBounce(raw io.Reader) (Bounce, error) {
	mail, err := io.ReadAll(io.LimitReader(raw, MaxBounce))
	if err != nil {
		return Bounce{}, fmt.Errorf("read bounce: %w", err)
	}
	root := readReport(mail)
	if root == nil {
		return Bounce{}, ErrNoBounce
	}
	b := Bounce{}
	if b.Delivery = k.deliveryIn(mail); b.Delivery == 0 {
		return Bounce{}, ErrNoBounce
	}
	if _, params, _ := root.Header.ContentType(); strings.EqualFold(params["report-type"], "feedback-report") {
		b.Code, b.Hard = complaint, true
		return b, nil
	}
	status := statusOf(root)
	if status == nil {
		return Bounce{}, ErrNoBounce
	}
	lines := bufio.NewReader(status)
	for {
		if _, err := lines.Peek(1); err != nil {
			return Bounce{}, ErrNoBounce // all is read, or the rest is cut off or cannot be decoded
		}
		// The fields up to an empty line are about one recipient. Those before a line
		// that is not a field count, too.
		recipient, _ := textproto.ReadHeader(lines)
		if !strings.EqualFold(recipient.Get("Action"), "failed") {
			continue // it is late, or has arrived; or these are the fields about the mail
		}
		b.Code = cmp.Or(statusPattern.FindString(recipient.Get("Status")), undefinedStatus)
		if b.Code == undefinedStatus { // as Exim says of everything; the remote server's answer is behind that
			if told := diagnosticPattern.FindStringSubmatch(recipient.Get("Diagnostic-Code")); told != nil {
				b.Code = told[1]
			}
		}
		b.Hard = proves(b.Code)
		return b, nil
	}
}

// readReport returns a mail that is a report (RFC 6522), or nil. Only its header has
// been read.
func readReport(mail []byte) *message.Entity {
	// Programs that mails are piped into often get a line for a mailbox's file first.
	if bytes.HasPrefix(mail, []byte("From ")) {
		_, mail, _ = bytes.Cut(mail, []byte("\n"))
	}
	// The reader of parts expects the line end of the first boundary at all others.
	mail = bytes.ReplaceAll(mail, []byte("\r\n"), []byte("\n"))
	// An error beside a mail is about an encoding or a charset that is not known: of
	// texts for people, or of what then has no fields that could be read.
	root, _ := message.Read(bytes.NewReader(mail))
	if root == nil {
		return nil
	}
	if kind, _, err := root.Header.ContentType(); err != nil || kind != "multipart/report" {
		return nil
	}
	return root
}

// maxReportParts is how many parts of a report are read, broken ones included. A
// report has three (RFC 6522, section 3).
const maxReportParts = 100

// statusOf returns the part of a report that programs read, or nil. It is the second
// part, but not all servers keep to that. The parts are not searched for parts of
// their own: an original mail could itself be a report.
func statusOf(report *message.Entity) io.Reader {
	parts := report.MultipartReader()
	// A part whose header cannot be read is skipped: after an error, NextPart goes on
	// at the next line. It has the same error for the end of a mail that was cut off
	// as for all others, so the number of calls is bounded.
	for range maxReportParts {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if part == nil {
			continue
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")) // parameters do not matter
		if kind == "message/delivery-status" || kind == "message/global-delivery-status" {
			return part.Body
		}
	}
	return nil
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
