package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

//go:embed apply.sql
var applySQL string

// A form says what a batch needs of apply.sql. A city without a mail server pays
// nothing for mails; officials are mailed about few messages, and the others pay
// nothing for that.
type form struct{ Checked, Mail, Notice, Push bool }

// ModeratedData is the expression for the data of a draft about a moderated report.
func (form) ModeratedData() string { return moderatedData }

// A statement is one form of apply.sql, with the names of its parameters in the order
// of their numbers.
type statement struct {
	sql        string
	parameters []string
}

// statements are those of all forms.
var statements = newStatements()

var parameterPattern = regexp.MustCompile(`@\w+`)

func newStatements() map[form]statement {
	tmpl := template.Must(template.New("apply.sql").Parse(applySQL))
	all := make(map[form]statement)
	for bits := range 1 << 4 {
		f := form{Checked: bits&1 > 0, Mail: bits&2 > 0, Notice: bits&4 > 0, Push: bits&8 > 0}
		if f.Notice && !f.Mail {
			continue
		}
		var text strings.Builder
		if err := tmpl.Execute(&text, f); err != nil {
			panic(fmt.Sprintf("postgres: apply.sql: %v", err))
		}
		var s statement
		s.sql = parameterPattern.ReplaceAllStringFunc(text.String(), func(name string) string {
			i := slices.Index(s.parameters, name[1:])
			if i < 0 {
				i, s.parameters = len(s.parameters), append(s.parameters, name[1:])
			}
			return fmt.Sprintf("$%d", i+1)
		})
		all[f] = s
	}
	return all
}

// Applied is what a batch brought about.
type Applied struct {
	Batch notification.Batch
	Seen  int // messages that had their effect before
}

// A Message is a message with its effect on the streams.
type Message = consumer.Parsed[*notification.Effect]

// Apply gives each message of the batch, which came from queue and whose ids
// are distinct, its effect in one transaction, unless it had it before. The
// statement does what consumer.Note does, too.
func (s *Store) Apply(ctx context.Context, queue string, batch []Message) (Applied, error) {
	if err := s.moderate(ctx, batch); err != nil {
		return Applied{}, err
	}
	followers, err := s.followers(ctx, batch)
	if err != nil {
		return Applied{}, err
	}
	args, err := newApplyArgs(batch, followers)
	if err != nil {
		return Applied{}, err
	}
	owners, hashes := s.hashes(args.streams...)
	values := map[string]any{
		"queue": queue, "message_ids": args.ids, "about": args.about, "about_versions": args.aboutVersions,
		"draft_messages": args.messageIDs, "streams": args.streams, "draft_ids": args.draftIDs, "types": args.types,
		"reports": args.reports, "versions": args.versions, "data": args.data, "withheld": args.withheld, "now": args.now,
		"owners": owners, "owner_hashes": hashes,
		"status_updated": string(event.StatusUpdatedKey), "anonymous": email.Anonymous,
		"mail": email.Channel, "mail_after": s.mailAfter, "mail_lifetime": email.Lifetime,
		"notice_lane": email.NoticeLane, "notice_after": email.NoticeAfter, "officials": email.Officials,
		"overdue": email.Overdue, "report_overdue": string(event.ReportOverdueKey), "overdue_level": email.OverdueLevel,
		"push": push.Channel, "push_after": push.ReadFirst, "push_lifetime": push.Lifetime,
	}
	f := form{Mail: s.mailAfter != nil, Push: s.push}
	f.Notice = f.Mail && s.notices[email.Officials] && slices.ContainsFunc(batch, longOverdue)
	numbers, err := s.write(ctx, f, values)
	if err == nil && len(numbers) == 0 {
		f.Checked = true
		numbers, err = s.write(ctx, f, values)
	}
	if err != nil {
		return Applied{}, fmt.Errorf("apply batch: %w", err)
	}
	if len(numbers) == 0 { // nothing was written, and what was seen before is acknowledged next
		if err := pgpool.Barrier(ctx, s.pool); err != nil {
			return Applied{}, err
		}
	}
	return args.applied(batch, numbers), nil
}

// write executes one form of apply.sql.
func (s *Store) write(ctx context.Context, f form, values map[string]any) ([]number, error) {
	st := statements[f]
	args := make([]any, len(st.parameters))
	for i, name := range st.parameters {
		args[i] = values[name]
	}
	rows, err := s.pool.Query(ctx, st.sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[number])
}

// longOverdue reports whether officials are mailed about m.
func longOverdue(m Message) bool {
	data := m.Value.Feed
	return data.Type == event.ReportOverdueKey && data.OverdueLevel >= email.OverdueLevel
}

// A number is what the database answers for each message that was new, and
// for each of its drafts.
type number struct {
	MessageID string
	Draft     *uuid.UUID // nil for a message that concerns no stream
	Epoch     *string
	Seq       *int64
	Moderated bool            // officials have taken the words that the message came with
	Data      json.RawMessage // what is there instead; nil unless moderated
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
// whose status changes. Whoever is told already is told once.
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
		if followers == nil || effect.Feed.Type != event.StatusUpdatedKey {
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

// applied joins what was asked for with the numbers that it got.
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
		// Also of a message that was seen: the process that saw it may have died
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
