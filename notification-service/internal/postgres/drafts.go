package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

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

	shown map[string]bool // messages of which a reader has the notification already
}

// newApplyArgs adds to the drafts of the batch one for each follower of a report
// whose status changes, and one for each of the desks that what officials get is about. A
// follower who gets a draft already gets no second one.
func newApplyArgs(batch []Message, followers map[uuid.UUID][]notification.Stream, desks []notification.Stream) (*applyArgs, error) {
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
			for _, desk := range desks {
				if d.Stream == notification.Officials && effect.Department != nil && desk.Has(*effect.Department) {
					a.add(m.ID, notification.Draft{Stream: desk, ID: notification.NewID(), Data: d.Data, Withheld: d.Withheld}, data)
				}
			}
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

// keep drops the drafts that to does not keep, and moves the others to the streams that it
// returns.
func (a *applyArgs) keep(to func(message, stream string) (string, bool)) {
	before := *a
	a.messageIDs, a.streams, a.draftIDs, a.types, a.reports, a.versions, a.data, a.withheld = nil, nil, nil, nil, nil, nil, nil, nil
	for i, message := range before.messageIDs {
		stream, ok := to(message, before.streams[i])
		if !ok {
			continue
		}
		a.messageIDs, a.streams, a.draftIDs = append(a.messageIDs, message), append(a.streams, stream), append(a.draftIDs, before.draftIDs[i])
		a.types, a.reports, a.versions = append(a.types, before.types[i]), append(a.reports, before.reports[i]), append(a.versions, before.versions[i])
		a.data, a.withheld = append(a.data, before.data[i]), append(a.withheld, before.withheld[i])
	}
}

// dropShown drops the drafts of which their readers have the notification already: the
// message was published again after what is known of it was removed.
func (a *applyArgs) dropShown(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, `
		select d.message_id, d.stream from unnest($1::text[], $2::text[], $3::uuid[]) as d (message_id, stream, report_id)
		join streams s on s.name = d.stream
		join notifications n on n.report_id = d.report_id and n.message_id = d.message_id and n.stream_id = s.id`, a.messageIDs, a.streams, a.reports)
	if err != nil {
		return fmt.Errorf("look up notifications: %w", err)
	}
	type place struct{ message, stream string }
	shown := make(map[place]bool)
	a.shown = make(map[string]bool)
	var at place
	if _, err := pgx.ForEachRow(rows, []any{&at.message, &at.stream}, func() error {
		shown[at], a.shown[at.message] = true, true
		return nil
	}); err != nil {
		return fmt.Errorf("look up notifications: %w", err)
	}
	a.keep(func(message, stream string) (string, bool) { return stream, !shown[place{message, stream}] })
	return nil
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
		case !ok, a.shown[m.ID]:
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
