// Package notification decides who gets which notification of an event. It knows
// neither the broker, nor the database, nor the browser.
package notification

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
)

// A Stream names a sequence of notifications with one kind of reader.
type Stream string

// Officials is the stream that every official of the whole city reads beside their own.
const Officials Stream = "role:official"

// DeskStream is the stream of officials who work for some departments alone, by their codes
// with spaces between: what Officials has of these departments, and of none. It begins when
// the first of them reads it.
func DeskStream(departments string) Stream { return Officials + ":" + Stream(departments) }

// Has reports whether s is a DeskStream and shows what is about a department, or about none
// if that is empty.
func (s Stream) Has(department string) bool {
	departments, ok := strings.CutPrefix(string(s), string(DeskStream("")))
	return ok && (department == "" || slices.Contains(strings.Fields(departments), department))
}

// UserStream is the stream that only the user reads.
func UserStream(userID string) Stream { return Stream("user:" + userID) }

// A Data is what the reader is shown. It never names a reporter or a voter.
type Data struct {
	Type          event.Key         `json:"type"`
	ReportID      uuid.UUID         `json:"report_id"`
	ReportVersion int64             `json:"report_version"`
	ReportTitle   string            `json:"report_title"`
	Status        event.Status      `json:"status,omitempty"`
	Note          string            `json:"note,omitempty"`
	Reply         bool              `json:"reply,omitempty"` // the note is a reply, and the status is what it was
	CategoryID    int32             `json:"category_id,omitempty"`
	CategoryName  string            `json:"category_name,omitempty"`
	PlaceMoved    bool              `json:"place_moved,omitempty"`          // of a correction: the place or the address is another
	ByReporter    bool              `json:"by_reporter,omitempty"`          // of a correction: the reporter did it
	CategoryWas   int32             `json:"previous_category_id,omitempty"` // of a correction of the category
	VerdictUntil  *time.Time        `json:"verdict_until,omitempty"`        // of a resolution, for the reporter alone: until when they may say whether it is fixed
	Retracted     bool              `json:"retracted,omitempty"`            // of a dispute: the reporter says by now that it is fixed
	VoteType      event.VoteType    `json:"vote_type,omitempty"`
	Score         *int64            `json:"score,omitempty"`
	DueAt         *time.Time        `json:"due_at,omitempty"`        // of a report that is overdue
	OverdueLevel  int32             `json:"overdue_level,omitempty"` // likewise, from 1
	QuestionID    uuid.UUID         `json:"question_id,omitzero"`    // to the reporter
	EndsOn        string            `json:"ends_on,omitempty"`       // the last day for an answer
	AskedBy       string            `json:"asked_by,omitempty"`      // the official who asked, for officials alone
	PhotoID       uuid.UUID         `json:"photo_id,omitzero"`
	Reason        event.PhotoReason `json:"reason,omitempty"` // for which a photo is not shown
	Action        event.Moderation  `json:"action,omitempty"` // what officials did to the public parts
	Hidden        bool              `json:"hidden,omitempty"` // whether they have hidden the report
	// Private says that only the reporter and officials see the report, so that this is for
	// nobody else, nor for webhooks without webhook.PrivateScope.
	Private    bool      `json:"private,omitempty"`
	HappenedAt time.Time `json:"happened_at"`
	// WordsVersion is the version of the report whose words this has, where
	// officials have taken those that it came with; or else 0.
	WordsVersion int64 `json:"words_version,omitempty"`

	// TraceID is the one of the message, in what the public feed of this replica shows
	// live. It goes nowhere else: it is for the metrics.
	TraceID string `json:"-"`
}

// A Moderation says up to which version of a report, that one not included, the
// words of it must no longer be shown to anybody.
type Moderation struct {
	ReportID uuid.UUID `json:"report_id"`
	Version  int64     `json:"version"`
}

// A Draft is a notification that has no number yet.
type Draft struct {
	Stream Stream
	ID     uuid.UUID // of the notification
	Data   Data
	// Withheld says that the report is anonymous. The page shows its reporter
	// everything; a mail passes others, and must name neither title nor place.
	Withheld bool
}

// A Notification is one that has its number in a stream.
type Notification struct {
	Stream    Stream
	Epoch     string // of the stream
	Seq       int64  // 1, 2, 3 … without a gap; 0 says that an account has taken over the guest of the stream
	ID        uuid.UUID
	Data      json.RawMessage // a Data
	CreatedAt time.Time
}

// A Batch is what one committed transaction brought about, for the live streams.
type Batch struct {
	Notifications []Notification // by stream in the order of their numbers
	Feed          []Data         // for the public city feed
	Moderated     []Moderation   // cached data of these reports must be dropped
}

// A Progress says how far the photo worker is with a photo of the reader's. It is
// no notification: it has no number, is kept nowhere and may get lost.
type Progress struct {
	ReportID uuid.UUID        `json:"report_id"`
	PhotoID  uuid.UUID        `json:"photo_id"`
	Stage    event.PhotoStage `json:"stage"`
}

// An Effect is everything that one message brings about.
type Effect struct {
	Drafts []Draft
	Feed   Data // what the public city feed shows: it has no history
	Public bool // whether it is shown there; events for officials or for an uploader alone are not

	Withheld bool // of each draft, those of followers included

	// Department is the one for whose DeskStreams the drafts of Officials are, too; nil for no
	// such stream.
	Department *string

	Moderated *event.ReportModerated // what officials did; nil for all other messages

	draft [1]Draft // room for Drafts: a message concerns one stream at the most
}

// Of returns the effect of m. The recipient is the user who filed the report,
// or empty when the message carried none.
//
// The reporter gets votes, status changes, corrections and questions, but not the report
// that they have just filed; the officials get that, what is overdue, what is disputed, and
// that a question was answered or was not: the recipient of these is who asked. Followers of the report
// get status changes, corrections and the withdrawal as well, which the store adds, since it knows them. The public feed
// gets everything but what IsPrivate, what is done to a report while it is hidden, and everything about one that
// only the city sees. Why a report is hidden is for its reporter alone; for everybody but the reporter one that is
// restricted to the city is hidden.
func Of(m event.Message, recipient string) *Effect {
	data := describe(m)
	effect := &Effect{
		Feed: data, Public: m.Key() != event.ReportOverdueKey && !IsPrivate(m.Key()) && !data.Private,
		Withheld: m.About().ReporterID == "", // the one field that every message leaves out of an anonymous report
	}
	effect.Department = m.About().Department
	if moderated, ok := m.(*event.ReportModerated); ok {
		effect.Moderated, effect.Feed.Note = moderated, ""
		effect.Public = !data.Private && (!moderated.Hidden || moderated.Action == event.Hidden || moderated.Action == event.Withdrawn)
		if moderated.Action == event.WordsRemoved { // nothing has happened to it
			effect.Public = false
		}
		if moderated.Action == event.Restricted { // everybody could see it until now
			effect.Public, effect.Feed.Private, effect.Feed.Action = true, false, event.Hidden
		}
	}
	stream := Officials
	switch {
	case m.Key() == event.ReportCreatedKey, m.Key() == event.ReportOverdueKey, m.Key() == event.DisputedKey:
	case m.Key() == event.AnsweredKey, m.Key() == event.ExpiredKey:
		data.AskedBy = recipient
	case recipient != "":
		stream = UserStream(recipient)
		if update, ok := m.(*event.StatusUpdate); ok && update.VerdictUntil > 0 {
			data.VerdictUntil = new(time.Unix(update.VerdictUntil, 0).UTC())
		}
	default:
		return effect
	}
	effect.draft[0] = Draft{Stream: stream, ID: NewID(), Data: data, Withheld: effect.Withheld}
	effect.Drafts = effect.draft[:]
	return effect
}

// Private are the kinds of messages that concern the reporter and officials alone, so
// that neither the feed nor webhooks have them.
var Private = []event.Key{event.PhotoRefusedKey, event.AskedKey, event.RemindedKey, event.AnsweredKey, event.ExpiredKey}

// IsPrivate reports whether a kind is one of Private.
func IsPrivate(key event.Key) bool { return slices.Contains(Private, key) }

func describe(m event.Message) Data {
	about := m.About()
	data := Data{
		Type: m.Key(), ReportID: about.ReportID, ReportVersion: about.ReportVersion,
		ReportTitle: about.ReportTitle, Private: about.Private, HappenedAt: time.Unix(about.Timestamp, 0).UTC(),
	}
	switch m := m.(type) {
	case *event.StatusUpdate:
		data.Status, data.Note, data.Reply = m.NewStatus, m.Note, m.Reply
	case *event.ReportCreated:
		data.Status = event.Pending
		data.CategoryID, data.CategoryName = m.CategoryID, m.CategoryName
	case *event.VoteReceived:
		data.VoteType, data.Score = m.VoteType, m.NewScore
	case *event.ReportModerated:
		data.Action, data.Hidden, data.Note, data.CategoryID = m.Action, m.Hidden, m.Note, m.CategoryID
	case *event.ReportCorrected:
		data.CategoryID, data.CategoryName, data.Note = m.CategoryID, m.CategoryName, m.Note
		data.CategoryWas, data.PlaceMoved, data.ByReporter = m.PreviousCategoryID, m.PlaceMoved, m.ByReporter
	case *event.ReportDisputed:
		data.CategoryID, data.CategoryName, data.Retracted = m.CategoryID, m.CategoryName, m.Retracted
	case *event.ReportCommented:
		data.CategoryID = m.CategoryID
	case *event.QuestionAsked:
		data.QuestionID, data.EndsOn = m.QuestionID, m.EndsOn
	case *event.QuestionReminded:
		data.QuestionID, data.EndsOn = m.QuestionID, m.EndsOn
	case *event.ReportAnswered:
		data.QuestionID = m.QuestionID
	case *event.QuestionExpired:
		data.QuestionID = m.QuestionID
	case *event.ReportOverdue:
		data.CategoryID, data.CategoryName = m.CategoryID, m.CategoryName
		data.DueAt, data.OverdueLevel = new(time.Unix(m.DueAt, 0).UTC()), m.Level
	case *event.PhotoReady:
		data.PhotoID, data.CategoryID = m.PhotoID, m.CategoryID
	case *event.PhotoRefused:
		data.PhotoID, data.Reason = m.PhotoID, m.Reason
	}
	return data
}

// ForFollowers reports whether those who follow a report are notified of what is
// shown in data.
func (d *Data) ForFollowers() bool {
	return !d.Private && (d.Type == event.StatusUpdatedKey || d.Type == event.CorrectedKey && !d.ByReporter || d.Action == event.Withdrawn)
}

// NewID returns an id for a notification. It is ordered by time, which keeps the
// index on it small and warm.
func NewID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
