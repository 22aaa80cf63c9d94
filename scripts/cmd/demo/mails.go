package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// digestMail is the type of the digest; the others have the new status as theirs.
const digestMail = "digest"

const (
	// pollMails is how often the mailbox is looked into.
	pollMails = 100 * time.Millisecond
	// digestWait is for how long the digest may take: it is due at a full minute.
	digestWait = 90 * time.Second
)

// A mailReader is a resident who asked for a mail about each new status, and
// perhaps for a digest of the rest. The mails come to the mailbox of the stack, and
// count as one more screen.
type mailReader struct {
	*person
	mailbox string // its page
	address string // that the mails go to
	digest  bool   // whether one is waited for
	audit   *audit

	mu       sync.Mutex
	versions map[statusOf]int64 // that mails are about
}

// A statusOf is a report with a status, which mails name in the place of a version.
type statusOf struct {
	report uuid.UUID
	status string
}

// A mail is one of the mailbox, as it lists them.
type mail struct {
	ID      int    `json:"id"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// wantMails proves an address of p, by the code that is sent there, and asks for
// mails about new statuses. A digest is of what happens from here on.
func wantMails(ctx context.Context, p *person, mailbox string, digest bool, a *audit) (*mailReader, error) {
	r := &mailReader{person: p, mailbox: strings.TrimSuffix(mailbox, "/"), address: uuid.NewString() + "@example.org", digest: digest, audit: a, versions: make(map[statusOf]int64)}
	contact := map[string]string{"address": r.address, "language": "en", "zone": "Etc/UTC"}
	if err := p.Do(ctx, http.MethodPut, "/me/contact", contact, nil); err != nil {
		return nil, fmt.Errorf("give an address for mails: %w", err)
	}
	if err := p.Do(ctx, http.MethodPost, "/me/contact/code", nil, nil); err != nil {
		return nil, fmt.Errorf("request a code: %w", err)
	}
	code, err := r.awaitCode(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.Do(ctx, http.MethodPost, "/me/contact/verify", map[string]string{"code": code}, nil); err != nil {
		return nil, fmt.Errorf("type the code: %w", err)
	}
	if err := p.Do(ctx, http.MethodPut, "/me/preferences", map[string][]string{"email": {string(event.StatusUpdatedKey)}}, nil); err != nil {
		return nil, fmt.Errorf("ask for mails: %w", err)
	}
	if !digest {
		return r, nil
	}
	return r, r.setDigest(ctx, time.Now().Add(12*time.Hour))
}

// setDigest asks for a digest that is due at a moment, to the minute.
func (r *mailReader) setDigest(ctx context.Context, at time.Time) error {
	settings := map[string]string{"frequency": "daily", "at": at.UTC().Format("15:04")}
	if err := r.Do(ctx, http.MethodPut, "/me/digest", settings, nil); err != nil {
		return fmt.Errorf("ask for a digest: %w", err)
	}
	return nil
}

// wantDigest asks for a digest at the next full minute.
func (r *mailReader) wantDigest(ctx context.Context) error {
	at := time.Now().Add(5 * time.Second).Truncate(time.Minute).Add(time.Minute)
	r.audit.Accept(city.Event{Version: 1, Screens: 1 << mailboxScreen, Planned: at})
	return r.setDigest(ctx, at)
}

// awaitDigest waits for the digest; the audit says whether it came.
func (r *mailReader) awaitDigest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, digestWait)
	defer cancel()
	r.audit.Await(uuid.Nil, 1, mailboxScreen, ctx.Done())
}

// expect says which version of the report a mail about its new status is about.
func (r *mailReader) expect(report uuid.UUID, version int64, status string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status == "pending" {
		status = "received" // its word in mails
	}
	r.versions[statusOf{report, strings.ReplaceAll(status, "_", " ")}] = version
}

var (
	codePattern   = regexp.MustCompile(`^(\d{6}) is your code$`)
	digestPattern = regexp.MustCompile(`new things? about your reports$`)
	statusPattern = regexp.MustCompile(`Now (received|in progress|resolved|rejected) `)
	linkPattern   = regexp.MustCompile(`/reports/([0-9a-f-]{36})`)
)

// awaitCode waits for the mail with the code, and returns that.
func (r *mailReader) awaitCode(ctx context.Context) (code string, err error) {
	return code, wait.Until(ctx, patience, "a code in the mailbox at "+r.mailbox, func(ctx context.Context) (bool, error) {
		mails, err := r.list(ctx)
		for _, m := range mails {
			if found := codePattern.FindStringSubmatch(m.Subject); found != nil && m.To == r.address {
				code = found[1]
			}
		}
		return code != "", err
	})
}

// watch tells the audit what comes into the mailbox, until ctx ends.
func (r *mailReader) watch(ctx context.Context) error {
	known := 0
	for {
		mails, err := r.list(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, m := range slices.Backward(mails) { // the latest is the first
			if m.ID > known && m.To == r.address && !r.arrived(m) {
				break // it came before the answer that says what it is about: look again
			}
			known = max(known, m.ID)
		}
		_ = wait.For(ctx, pollMails) // the next look says whether ctx has ended
	}
}

// arrived tells the audit of one mail, and reports whether it is known what the mail
// is about.
func (r *mailReader) arrived(m mail) bool {
	status, link := statusPattern.FindStringSubmatch(m.Text), linkPattern.FindStringSubmatch(m.Text)
	switch {
	case codePattern.MatchString(m.Subject):
	case digestPattern.MatchString(m.Subject):
		r.audit.See(city.Sight{Version: 1, Screen: mailboxScreen, Type: digestMail, Seen: time.Now()})
	case status != nil && link != nil:
		report, err := uuid.Parse(link[1])
		r.mu.Lock()
		version := r.versions[statusOf{report, status[1]}]
		r.mu.Unlock()
		if err == nil && version == 0 {
			return false
		}
		r.audit.See(city.Sight{Report: report, Version: version, Screen: mailboxScreen, Seen: time.Now()})
	}
	return true
}

// list returns what is in the mailbox, the latest first.
func (r *mailReader) list(ctx context.Context) ([]mail, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.mailbox+"/mails.json", nil)
	if err != nil {
		return nil, fmt.Errorf("address of the mailbox: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("look into the mailbox: %w", err)
	}
	defer res.Body.Close()
	var mails []mail
	if err := json.NewDecoder(res.Body).Decode(&mails); err != nil {
		return nil, fmt.Errorf("read the mailbox: %w", err)
	}
	return mails, nil
}
