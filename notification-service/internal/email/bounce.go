package email

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"regexp"
	"strings"
)

// MaxBounce is how much of a bounce is read. What is asked for are the headers of
// our mail; some servers send back all of it.
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
	Hard     bool   // the address takes nothing any more
}

// Complaint reports whether the reader called the mail spam.
func (b Bounce) Complaint() bool { return b.Code == complaint }

// ErrNoBounce says that a message is no bounce of ours: an answer of somebody who
// is on holiday, a notice that a mail is late, or one that was made up.
var ErrNoBounce = errors.New("not a bounce of a mail of ours")

var (
	// statusPattern is an enhanced status code (RFC 3463 section 2).
	statusPattern = regexp.MustCompile(`\b[245]\.\d{1,3}\.\d{1,3}\b`)
	// diagnosticPattern is one behind what a server answered, in the words of
	// another: an address of a host looks like one, too.
	diagnosticPattern = regexp.MustCompile(`\b[245]\d\d[ #-]+([245]\.\d{1,3}\.\d{1,3})\b`)
	// tokenPattern is where a delivery's token stands: in the address of the
	// bounce, which is the sender of the mail, and in its Message-ID.
	tokenPattern = regexp.MustCompile(`(?i)(?:\bbounce\+|<)([a-z2-7]{26})@`)
)

// ParseBounce reads a message that came to the address of bounces: a delivery
// status notification (RFC 3464) or a complaint (RFC 5965). The error is
// ErrNoBounce, or says that it is no message at all.
//
// Who sends a bounce is nobody whom to believe. But the token in it cannot be made
// up, and was only in the mail.
func (k *Keys) ParseBounce(raw io.Reader) (Bounce, error) {
	message, err := io.ReadAll(io.LimitReader(raw, MaxBounce))
	if err != nil {
		return Bounce{}, fmt.Errorf("read bounce: %w", err)
	}
	root, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return Bounce{}, ErrNoBounce
	}
	mediaType, params, err := mime.ParseMediaType(root.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/report" {
		return Bounce{}, ErrNoBounce
	}
	b := Bounce{}
	if b.Delivery = k.deliveryIn(message); b.Delivery == 0 {
		return Bounce{}, ErrNoBounce
	}
	if strings.EqualFold(params["report-type"], "feedback-report") {
		b.Code, b.Hard = complaint, true
		return b, nil
	}
	recipient := failedRecipient(multipart.NewReader(root.Body, params["boundary"]))
	if recipient == nil {
		return Bounce{}, ErrNoBounce
	}
	b.Code = cmp.Or(statusPattern.FindString(recipient.Get("Status")), undefinedStatus)
	if b.Code == undefinedStatus { // as Exim says of everything; what it was told is behind that
		if told := diagnosticPattern.FindStringSubmatch(recipient.Get("Diagnostic-Code")); told != nil {
			b.Code = told[1]
		}
	}
	b.Hard = strings.HasPrefix(b.Code, "5.1.") || b.Code == "5.2.1"
	return b, nil
}

// maxReportParts is how many parts of a report are looked at. It has three
// (RFC 6522 section 3).
const maxReportParts = 10

// failedRecipient returns what a report says of the first recipient whom it did not
// reach, or nil. Others are still waited for, or have the mail. Parts within parts
// are not looked at, so that a message costs what its length allows for.
func failedRecipient(parts *multipart.Reader) textproto.MIMEHeader {
	for range maxReportParts {
		part, err := parts.NextPart()
		if err != nil {
			return nil
		}
		mediaType, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil || mediaType != "message/delivery-status" && mediaType != "message/global-delivery-status" {
			continue
		}
		content := io.Reader(part)
		if strings.EqualFold(part.Header.Get("Content-Transfer-Encoding"), "base64") {
			content = base64.NewDecoder(base64.StdEncoding, part)
		}
		text, _ := io.ReadAll(content) // what is cut off says enough until there
		groups := textproto.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(text), strings.NewReader("\r\n\r\n"))))
		for {
			group, err := groups.ReadMIMEHeader() // of the message, then of each recipient
			if strings.EqualFold(group.Get("Action"), "failed") {
				return group
			}
			if err != nil {
				return nil
			}
		}
	}
	return nil
}

// deliveryIn returns the delivery that is named in a message, or 0.
func (k *Keys) deliveryIn(message []byte) int64 {
	for _, match := range tokenPattern.FindAllSubmatch(message, -1) {
		if id, ok := k.Delivery(string(match[1])); ok {
			return id
		}
	}
	return 0
}
