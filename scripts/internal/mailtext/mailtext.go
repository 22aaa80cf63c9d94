// Package mailtext reads what mails say, for the mailbox of a developer's machine and
// for the tests that receive mails.
package mailtext

import (
	"bytes"
	"io"
	"strings"

	"github.com/emersion/go-message"
)

// A Content is what a reader sees of a mail.
type Content struct {
	Subject, MessageID string
	Text, HTML         string // one of them may be missing
}

// Read returns the content of a mail. With an error, it returns what was read until
// then.
func Read(raw []byte) (Content, error) {
	root, err := message.Read(bytes.NewReader(raw))
	if err != nil {
		return Content{}, err
	}
	c := Content{MessageID: root.Header.Get("Message-ID")}
	if c.Subject, err = root.Header.Text("Subject"); err != nil {
		return c, err
	}
	return c, root.Walk(func(_ []int, part *message.Entity, err error) error {
		if err != nil {
			return err
		}
		kind, _, err := part.Header.ContentType()
		if err != nil || strings.HasPrefix(kind, "multipart/") {
			return err
		}
		body, err := io.ReadAll(part.Body)
		switch kind {
		case "text/plain":
			c.Text += string(body)
		case "text/html":
			c.HTML += string(body)
		}
		return err
	})
}
