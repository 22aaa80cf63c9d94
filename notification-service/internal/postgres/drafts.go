package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/pgpool"
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

// applyArgs are the drafts of a batch.
type applyArgs struct {
	drafts []draft
	now    time.Time
	shown  map[string]bool // messages of which a reader has the notification already
}

// A draft is a notification that has no number yet.
type draft struct {
	message  string // its id
	stream   notification.Stream
	id       uuid.UUID
	about    *notification.Data
	data     json.RawMessage // about, encoded
	withheld bool
}

// newApplyArgs adds to the drafts of the batch one for each follower of a report
// whose status changes, and one for each of the desks that what officials get is about. A
// follower who gets a draft already gets no second one.
func newApplyArgs(batch []Message, followers map[uuid.UUID][]notification.Stream, desks []notification.Stream) (*applyArgs, error) {
	a := &applyArgs{
		drafts: make([]draft, 0, len(batch)),          // most messages have one
		now:    time.Now().Truncate(time.Microsecond), // as exact as a timestamptz
	}
	for _, m := range batch {
		effect := m.Value
		for i := range effect.Drafts {
			d := &effect.Drafts[i]
			data, err := json.Marshal(d.Data)
			if err != nil {
				return nil, fmt.Errorf("encode notification: %w", err)
			}
			a.drafts = append(a.drafts, draft{m.ID, d.Stream, d.ID, &d.Data, data, d.Withheld})
			for _, desk := range desks {
				if d.Stream == notification.Officials && effect.Department != nil && desk.Has(*effect.Department) {
					a.drafts = append(a.drafts, draft{m.ID, desk, notification.NewID(), &d.Data, data, d.Withheld})
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
				a.drafts = append(a.drafts, draft{m.ID, stream, notification.NewID(), &effect.Feed, data, effect.Withheld})
			}
		}
	}
	return a, nil
}

func (a *applyArgs) streams() []string {
	return column(a.drafts, func(d draft) string { return string(d.stream) })
}

func (a *applyArgs) messages() []string {
	return column(a.drafts, func(d draft) string { return d.message })
}

func (a *applyArgs) reports() pgtype.FlatArray[pgtype.UUID] {
	return idColumn(a.drafts, func(d draft) uuid.UUID { return d.about.ReportID })
}

// A place is that of a message in a stream, which has one notification of it.
type place struct {
	message string
	stream  notification.Stream
}

// dropShown drops the drafts of which their readers have the notification already: the
// message was published again after what is known of it was removed.
func (a *applyArgs) dropShown(ctx context.Context, pool *pgxpool.Pool) error {
	shown := make(map[place]bool)
	a.shown = make(map[string]bool)
	var at place
	err := pgpool.ForEach(ctx, pool, "look up notifications", []any{&at.message, &at.stream}, func() error {
		shown[at], a.shown[at.message] = true, true
		return nil
	}, `
		select d.message_id, d.stream from unnest($1::text[], $2::text[], $3::uuid[]) as d (message_id, stream, report_id)
		join streams s on s.name = d.stream
		join notifications n on n.report_id = d.report_id and n.message_id = d.message_id and n.stream_id = s.id`, a.messages(), a.streams(), a.reports())
	if err != nil {
		return err
	}
	a.drafts = slices.DeleteFunc(a.drafts, func(d draft) bool { return shown[place{d.message, d.stream}] })
	return nil
}

// applied joins the drafts with the numbers that they got.
func (a *applyArgs) applied(batch []Message, numbers []number) Applied {
	fresh := make(map[string]*number, len(batch))
	numbered := make(map[uuid.UUID]*number, len(numbers))
	for i := range numbers {
		n := &numbers[i]
		fresh[n.MessageID] = n
		if n.Draft != nil {
			numbered[*n.Draft] = n
		}
	}
	result := Applied{Batch: notification.Batch{
		Notifications: make([]notification.Notification, 0, len(numbered)), Feed: make([]notification.Data, 0, len(fresh)),
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
	for _, d := range a.drafts {
		if n, ok := numbered[d.id]; ok {
			data := d.data
			if n.Moderated {
				data = n.Data
			}
			result.Batch.Notifications = append(result.Batch.Notifications, notification.Notification{
				Stream: d.stream, Epoch: *n.Epoch, Seq: *n.Seq, ID: d.id, Data: data, CreatedAt: a.now,
			})
		}
	}
	return result
}
