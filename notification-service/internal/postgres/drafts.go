package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

// A number is what the database answers for each message that was new, and
// for each of its drafts.
type number struct {
	MessageID string
	Draft     *uuid.UUID // nil for a message that concerns no stream
	Epoch     *string
	Seq       *int64
	Moderated bool            // officials have taken the words that the message came with
	Data      json.RawMessage // the data that replace it; nil unless moderated
}

// applyArgs are the columns of the drafts.
type applyArgs struct {
	// By message.
	ids           []string
	about         pgtype.FlatArray[pgtype.UUID] // which report
	aboutVersions []int64

	// By draft.
	messageIDs []string
	streams    []string
	draftIDs   pgtype.FlatArray[pgtype.UUID] // which pgx encodes without a detour by their text
	types      []string
	reports    pgtype.FlatArray[pgtype.UUID]
	versions   []int64
	data       []json.RawMessage
	withheld   []bool
	now        time.Time
}

// newApplyArgs adds to the drafts of the batch one for each follower of a report
// whose status changes. A follower who gets a draft already gets no second one.
func newApplyArgs(batch []Message, followers map[uuid.UUID][]notification.Stream) (*applyArgs, error) {
	n := len(batch) // most messages have one draft
	a := &applyArgs{
		ids: make([]string, 0, n), about: make([]pgtype.UUID, 0, n), aboutVersions: make([]int64, 0, n),
		messageIDs: make([]string, 0, n), streams: make([]string, 0, n), draftIDs: make([]pgtype.UUID, 0, n), types: make([]string, 0, n),
		reports: make([]pgtype.UUID, 0, n), versions: make([]int64, 0, n), data: make([]json.RawMessage, 0, n), withheld: make([]bool, 0, n),
		now: time.Now().Truncate(time.Microsecond), // as exact as a timestamptz
	}
	for _, m := range batch {
		effect := m.Value
		a.ids = append(a.ids, m.ID)
		a.about = append(a.about, pgtype.UUID{Bytes: effect.Feed.ReportID, Valid: true})
		a.aboutVersions = append(a.aboutVersions, effect.Feed.ReportVersion)
		for _, d := range effect.Drafts {
			data, err := json.Marshal(d.Data)
			if err != nil {
				return nil, fmt.Errorf("encode notification: %w", err)
			}
			a.add(m.ID, d, data)
		}
		if followers == nil || !effect.Feed.ForFollowers() {
			continue
		}
		data, err := json.Marshal(effect.Feed)
		if err != nil {
			return nil, fmt.Errorf("encode notification: %w", err)
		}
		for _, stream := range followers[effect.Feed.ReportID] {
			if !slices.ContainsFunc(effect.Drafts, func(d notification.Draft) bool { return d.Stream == stream }) {
				a.add(m.ID, notification.Draft{Stream: stream, ID: notification.NewID(), Data: effect.Feed, Withheld: effect.Withheld}, data)
			}
		}
	}
	return a, nil
}

func (a *applyArgs) add(messageID string, d notification.Draft, data json.RawMessage) {
	a.messageIDs = append(a.messageIDs, messageID)
	a.streams = append(a.streams, string(d.Stream))
	a.draftIDs = append(a.draftIDs, pgtype.UUID{Bytes: d.ID, Valid: true})
	a.types = append(a.types, string(d.Data.Type))
	a.reports = append(a.reports, pgtype.UUID{Bytes: d.Data.ReportID, Valid: true})
	a.versions = append(a.versions, d.Data.ReportVersion)
	a.data = append(a.data, data)
	a.withheld = append(a.withheld, d.Withheld)
}

// applied joins the drafts with the numbers that they got.
func (a *applyArgs) applied(batch []Message, numbers []number) Applied {
	fresh := make(map[string]*number, len(batch))
	place := make(map[uuid.UUID]*number, len(numbers))
	for i := range numbers {
		n := &numbers[i]
		fresh[n.MessageID] = n
		if n.Draft != nil {
			place[*n.Draft] = n
		}
	}
	result := Applied{Batch: notification.Batch{
		Notifications: make([]notification.Notification, 0, len(place)), Feed: make([]notification.Data, 0, len(fresh)),
	}}
	for _, m := range batch {
		effect := m.Value
		// Also for a message that was seen: the process that saw it may have died
		// before it told the others.
		if effect.Moderated != nil {
			result.Batch.Moderated = append(result.Batch.Moderated, notification.Moderation{
				ReportID: effect.Feed.ReportID, Version: effect.Feed.ReportVersion,
			})
		}
		switch n, ok := fresh[m.ID]; {
		case !ok:
			result.Seen++
		case effect.Public && !n.Moderated:
			result.Batch.Feed = append(result.Batch.Feed, effect.Feed)
		}
	}
	for i, id := range a.draftIDs {
		if n, ok := place[id.Bytes]; ok {
			data := a.data[i]
			if n.Moderated {
				data = n.Data
			}
			result.Batch.Notifications = append(result.Batch.Notifications, notification.Notification{
				Stream: notification.Stream(a.streams[i]), Epoch: *n.Epoch, Seq: *n.Seq, ID: id.Bytes, Data: data, CreatedAt: a.now,
			})
		}
	}
	return result
}
