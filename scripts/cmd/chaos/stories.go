//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
)

// storiesToRead is how many messages' stories are compared with the account.
const storiesToRead = 1000

// stories is the account of what the services tell of messages.
type stories struct {
	read, incomplete int
	examples         []string // of incomplete ones
}

// A listed message is one as the outbox lists it.
type listed struct {
	ID            uuid.UUID
	RoutingKey    event.Key `json:"routing_key"`
	ReportVersion int64     `json:"report_version"`
}

// An entry is one thing that a story tells.
type entry struct {
	At          time.Time
	Kind, Place string
}

// readStories reads the stories of messages about reports chosen at random, as many as
// there should be. Each must tell exactly once that the message was accepted, published
// and handled by the group that it is for; and a report must have as many messages that
// change its version as it has versions. It runs after everything is settled.
func (t *town) readStories(ctx context.Context, versions map[*report]int64) (stories, error) {
	// The outbox looks for a report's messages among the latest: so are the last reports.
	chosen := slices.Clone(t.reports[max(0, len(t.reports)-1500):])
	rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	var all stories
	var mu sync.Mutex
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(readersAtOnce)
	for _, r := range chosen {
		mu.Lock()
		enough := all.read >= storiesToRead
		mu.Unlock()
		if enough {
			break
		}
		readers.Go(func() error {
			read, faults, err := storiesOf(ctx, t.operator, r.id, versions[r])
			mu.Lock()
			defer mu.Unlock()
			all.read += read
			all.incomplete += len(faults)
			all.examples = append(all.examples, faults...)
			return err
		})
	}
	return all, readers.Wait()
}

// storiesOf reads the stories of a report's messages, and says what is wrong with them.
func storiesOf(ctx context.Context, operator *client.Client, report uuid.UUID, version int64) (read int, faults []string, err error) {
	messages, err := messagesOf(ctx, operator, report)
	if err != nil {
		return 0, nil, err
	}
	told := make(map[int64]bool)
	for _, m := range messages {
		entries, err := entriesOf(ctx, operator, report, m.ID)
		if err != nil {
			return read, faults, err
		}
		read++
		told[m.ReportVersion] = true
		queue := event.Topology{}.Queue(m.RoutingKey)
		for _, want := range []entry{{Kind: "accepted", Place: "outbox"}, {Kind: "published", Place: "outbox"}, {Kind: "handled", Place: queue}} {
			if n := want.in(entries); n != 1 {
				faults = append(faults, fmt.Sprintf("message %s (%s) of report %s was %s %d times in %s", m.ID, m.RoutingKey, report, want.Kind, n, want.Place))
			}
		}
	}
	for v := int64(1); v <= version; v++ {
		if !told[v] {
			faults = append(faults, fmt.Sprintf("version %d of report %s has no message", v, report))
		}
	}
	return read, faults, nil
}

// messagesOf lists what was published about a report.
func messagesOf(ctx context.Context, operator *client.Client, report uuid.UUID) (all []listed, err error) {
	query := url.Values{"status": {"published"}, "report_id": {report.String()}, "limit": {"100"}}
	for {
		var page struct {
			Messages   []listed
			NextCursor string `json:"next_cursor"`
		}
		if err := read(ctx, operator, "/admin/outbox/messages?"+query.Encode(), &page); err != nil {
			return nil, fmt.Errorf("list the messages of a report: %w", err)
		}
		all = append(all, page.Messages...)
		if page.NextCursor == "" {
			return all, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

// in counts the entries of e's kind and place.
func (e entry) in(entries []entry) (n int) {
	for _, other := range entries {
		if other.Kind == e.Kind && other.Place == e.Place {
			n++
		}
	}
	return n
}

// entriesOf joins what both services tell of a message.
func entriesOf(ctx context.Context, operator *client.Client, report, message uuid.UUID) (entries []entry, err error) {
	for _, path := range []string{
		"/admin/outbox/messages/" + message.String() + "/story",
		"/admin/messages/" + message.String() + "/story?report_id=" + report.String(),
	} {
		var side struct{ Entries []entry }
		if err := read(ctx, operator, path, &side); err != nil {
			return nil, fmt.Errorf("read the story of a message: %w", err)
		}
		entries = append(entries, side.Entries...)
	}
	return entries, nil
}

// String returns the fields of the last line.
func (s stories) String() string {
	return fmt.Sprintf("stories=%d incomplete_stories=%d", s.read, s.incomplete)
}
