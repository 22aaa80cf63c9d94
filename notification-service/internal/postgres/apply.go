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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/erasure"
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

// shownConstraint is the check that a stream has one notification of a message.
const shownConstraint = "notifications_message_pkey"

// Applied is what a batch brought about.
type Applied struct {
	Batch notification.Batch
	Seen  int // messages that had their effect before
}

// Options say what the database is used for. The zero Options are those of a city
// that sends neither mails nor pushes.
type Options struct {
	Mail    bool            // write deliveries for contacts: there is a mail server
	MailDue time.Duration   // after which a mail is due: the time to read the notification on the page
	Push    bool            // write deliveries for devices: there is a key
	Notices []string        // the targets of notices that have an address, such as email.Officials
	Erased  *erasure.Eraser // nothing is written for those whom it has erased; may be nil
	Keys    *event.Keyring  // of the recipients in dead letters; needed with Erased
}

// Effects are what messages bring about: notifications, with the mails and pushes
// about them.
type Effects struct {
	pool    *pgxpool.Pool
	erased  *Erased
	options Options
}

// A Message is a message with its effect on the streams.
type Message = consumer.Parsed[*notification.Effect]

// Apply gives each message of the batch, which came from queue and whose ids
// are distinct, its effect in one transaction, unless it had it before. The
// statement does what consumer.Note does, too.
func (s *Effects) Apply(ctx context.Context, queue string, batch []Message) (Applied, error) {
	if err := s.moderate(ctx, batch); err != nil {
		return Applied{}, err
	}
	followers, err := followers(ctx, s.pool, batch)
	if err != nil {
		return Applied{}, err
	}
	desks, err := desks(ctx, s.pool, batch)
	if err != nil {
		return Applied{}, err
	}
	s.erased.hideAskers(batch)
	args, err := newApplyArgs(batch, followers, desks)
	if err != nil {
		return Applied{}, err
	}
	numbers, err := s.applyOnce(ctx, queue, batch, args)
	// Both are rare, so that other batches pay nothing for them.
	for range 2 {
		mend, ok := map[string]func(context.Context, *pgxpool.Pool) error{adoptedConstraint: args.readdress, shownConstraint: args.dropShown}[pgpool.Constraint(err)]
		if !ok {
			break
		}
		if err := mend(ctx, s.pool); err != nil {
			return Applied{}, err
		}
		numbers, err = s.applyOnce(ctx, queue, batch, args)
	}
	if err != nil {
		return Applied{}, fmt.Errorf("apply batch: %w", err)
	}
	if len(numbers) == 0 { // nothing was written, and messages seen before are acknowledged next
		if err := pgpool.Barrier(ctx, s.pool); err != nil {
			return Applied{}, err
		}
	}
	// After the notifications: if the process dies before, the message comes again.
	for _, m := range batch {
		if moderated := m.Value.Moderated; moderated != nil && (moderated.Action == event.Withdrawn || moderated.Action == event.WordsRemoved) {
			if err := pgpool.Exec(ctx, s.pool, "end follows", `delete from follows where report_id = $1`, moderated.ReportID); err != nil {
				return Applied{}, err
			}
		}
	}
	return args.applied(batch, numbers), nil
}

// desks returns the streams of officials who work for departments alone, if a message of the
// batch names one. There are a few for each department.
func desks(ctx context.Context, pool *pgxpool.Pool, batch []Message) ([]notification.Stream, error) {
	if !slices.ContainsFunc(batch, func(m Message) bool { return m.Value.Department != nil }) {
		return nil, nil
	}
	return pgpool.Collect(ctx, pool, "read streams of departments", pgx.RowTo[notification.Stream],
		`select name from streams where name like 'role:official:%'`) // as the index has it
}

// applyOnce writes args, by the plain form if it can.
func (s *Effects) applyOnce(ctx context.Context, queue string, batch []Message, args *applyArgs) ([]number, error) {
	f, values := s.form(batch), s.values(queue, batch, args)
	numbers, err := s.write(ctx, f, values)
	if err == nil && len(numbers) == 0 {
		f.Checked = true
		numbers, err = s.write(ctx, f, values)
	}
	return numbers, err
}

// form returns the plain form that batch needs.
func (s *Effects) form(batch []Message) form {
	f := form{Mail: s.options.Mail, Push: s.options.Push}
	f.Notice = f.Mail && slices.Contains(s.options.Notices, email.Officials) && slices.ContainsFunc(batch, longOverdue)
	return f
}

// values returns those of all parameters, by their names.
func (s *Effects) values(queue string, batch []Message, args *applyArgs) map[string]any {
	streams := args.streams()
	owners, hashes := s.erased.hashes(streams...)
	return map[string]any{
		"queue":          queue,
		"message_ids":    column(batch, func(m Message) string { return m.ID }),
		"about":          idColumn(batch, func(m Message) uuid.UUID { return m.Value.Feed.ReportID }),
		"about_versions": column(batch, func(m Message) int64 { return m.Value.Feed.ReportVersion }),
		"draft_messages": args.messages(), "streams": streams, "reports": args.reports(), "now": args.now,
		"draft_ids": idColumn(args.drafts, func(d draft) uuid.UUID { return d.id }),
		"types":     column(args.drafts, func(d draft) string { return string(d.about.Type) }),
		"versions":  column(args.drafts, func(d draft) int64 { return d.about.ReportVersion }),
		"data":      column(args.drafts, func(d draft) json.RawMessage { return d.data }),
		"withheld":  column(args.drafts, func(d draft) bool { return d.withheld }),
		"owners":    owners, "owner_hashes": hashes,
		"anonymous_kinds": email.AnonymousKinds, "anonymous": email.Anonymous,
		"mail": email.Channel, "mail_after": s.options.MailDue, "mail_lifetime": email.Lifetime,
		"notice_lane": email.NoticeLane, "notice_after": email.NoticeAfter, "officials": email.Officials,
		"officials_stream": notification.Officials, "overdue": email.Overdue, "report_overdue": string(event.ReportOverdueKey), "overdue_level": email.OverdueLevel,
		"push": push.Channel, "push_after": push.ReadFirst, "push_lifetime": push.Lifetime,
	}
}

// write executes one form of apply.sql.
func (s *Effects) write(ctx context.Context, f form, values map[string]any) ([]number, error) {
	st := statements[f]
	return pgpool.Collect(ctx, s.pool, "write notifications", pgx.RowToStructByPos[number], st.sql, st.args(values)...)
}

// args returns the values of the statement's parameters, in the order of their numbers.
func (s *statement) args(values map[string]any) []any {
	args := make([]any, len(s.parameters))
	for i, name := range s.parameters {
		args[i] = values[name]
	}
	return args
}

// longOverdue reports whether officials are mailed about m.
func longOverdue(m Message) bool {
	data := m.Value.Feed
	return data.Type == event.ReportOverdueKey && data.OverdueLevel >= email.OverdueLevel
}
