package postgres

import (
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// shownReporter returns the reporter that a message may name: none for an
// anonymous report.
func shownReporter(f *report.Filing) report.Reporter {
	if f.Privacy != report.Public {
		return report.Reporter{}
	}
	return f.Reporter
}

// subject returns what a message says about the report f, which a change at the
// time at has brought to version.
func subject(f *report.Filing, version int64, at time.Time) event.Subject {
	return event.Subject{
		ReportID: f.ID, ReportVersion: version, ReportTitle: f.Title,
		ReporterID: shownReporter(f).ID, Private: f.Private(), Timestamp: at.Unix(), Asset: f.Asset.Key,
		Latitude: latitude(f.Position), Longitude: longitude(f.Position),
	}
}

// namelessSubject is subject without the reporter, also for a public report: no
// message says who uploaded a photo or wrote a comment.
func namelessSubject(f *report.Filing, at time.Time) event.Subject {
	s := subject(f, f.Version, at)
	s.ReporterID = ""
	return s
}

func photoUploaded(f *report.Filing, photo uuid.UUID, at time.Time) *event.PhotoUploaded {
	return &event.PhotoUploaded{Subject: namelessSubject(f, at), PhotoID: photo}
}

func photoReady(f *report.Filing, photo uuid.UUID) *event.PhotoReady {
	return &event.PhotoReady{Subject: namelessSubject(f, f.UpdatedAt), PhotoID: photo, CategoryID: f.Category.ID}
}

func photoRefused(f *report.Filing, photo uuid.UUID, reason report.PhotoReason, at time.Time) *event.PhotoRefused {
	return &event.PhotoRefused{Subject: namelessSubject(f, at), PhotoID: photo, Reason: event.PhotoReason(reason)}
}

func reportCommented(f *report.Filing, at time.Time) *event.ReportCommented {
	return &event.ReportCommented{Subject: namelessSubject(f, at), CategoryID: f.Category.ID}
}

// questionAsked and questionReminded are for the reporter, and name them where a change
// of status does.
func questionAsked(f *report.Filing, question uuid.UUID, endsOn string, at time.Time) *event.QuestionAsked {
	return &event.QuestionAsked{Subject: subject(f, f.Version, at), QuestionID: question, EndsOn: endsOn}
}

func questionReminded(f *report.Filing, question uuid.UUID, endsOn string, at time.Time) *event.QuestionReminded {
	return &event.QuestionReminded{Subject: subject(f, f.Version, at), QuestionID: question, EndsOn: endsOn}
}

func reportAnswered(f *report.Filing, question uuid.UUID, at time.Time) *event.ReportAnswered {
	return &event.ReportAnswered{Subject: namelessSubject(f, at), QuestionID: question}
}

func questionExpired(f *report.Filing, question uuid.UUID, at time.Time) *event.QuestionExpired {
	return &event.QuestionExpired{Subject: namelessSubject(f, at), QuestionID: question}
}

// guestAdopted tells that the account for which it is sealed has taken over a guest. It is
// about no report: nothing in it leads to one.
func guestAdopted(keys *event.Keyring, guestID string) *event.GuestAdopted {
	id := uuid.New()
	return &event.GuestAdopted{
		Subject: event.Subject{ReportID: id, ReportVersion: 1, ReportTitle: event.AdoptionTitle, Timestamp: time.Now().Unix()},
		Guest:   keys.Seal(id, guestID),
	}
}

// firmNotice is the mail to a firm about a job. The reporter is not in it, and of a report
// that only the city sees nothing that the reporter has written.
func firmNotice(j dueJob, kind event.FirmNoticeKind, zone *time.Location, keys *event.Keyring) *event.FirmNotice {
	m := &event.FirmNotice{
		Subject: namelessSubject(&j.Filing, j.now), JobID: j.job, Kind: kind, Number: report.Reference(j.ID), CategoryName: j.category, Text: j.text,
		EndsOn: j.endsAt.In(zone).Add(-time.Second).Format(time.DateOnly), Mailbox: keys.SealPadded(j.job, j.mailbox, mailboxSize), Token: j.link,
	}
	if j.Private() {
		m.ReportTitle = j.category
	} else {
		m.Address, m.Photos = j.Address, j.photos
	}
	if kind == event.FirmEnded {
		m.Token = ""
	}
	return m
}

func reportCreated(f *report.Filing) *event.ReportCreated {
	return &event.ReportCreated{
		Subject:    subject(f, f.Version, f.CreatedAt),
		CategoryID: f.Category.ID, CategoryName: f.Category.Name,
		ReporterName: shownReporter(f).Name, PrivacyLevel: event.Privacy(f.Privacy),
	}
}

func statusUpdate(f *report.Filing, c report.Change, previous statusMessage) *event.StatusUpdate {
	return &event.StatusUpdate{
		Subject:   subject(f, c.Version, c.At),
		NewStatus: event.Status(c.To), Note: c.Note, CategoryID: f.Category.ID, Reply: c.IsReply(),
		PreviousMessageID: previous.id.Bytes, PreviousStatusVersion: previous.version.Int64,
	}
}

// reportDisputed announces the entry of a dispute of f, or of its end.
func reportDisputed(f *report.Filing, c report.Change, retracted bool) *event.ReportDisputed {
	return &event.ReportDisputed{
		Subject: namelessSubject(f, c.At), CategoryID: f.Category.ID, CategoryName: f.Category.Name, Retracted: retracted,
	}
}

// reportCorrected announces the entry of a correction of f.
func reportCorrected(f *report.Filing, c report.Change) *event.ReportCorrected {
	m := &event.ReportCorrected{
		Subject:    subject(f, c.Version, c.At),
		CategoryID: f.Category.ID, CategoryName: f.Category.Name, Note: c.Note,
		PlaceMoved: c.Corrected.Moved(), ByReporter: c.Corrected.ByReporter,
	}
	if category := c.Corrected.Category; category != nil {
		m.PreviousCategoryID = category.From
	}
	if position := c.Corrected.Position; position != nil {
		m.PreviousLatitude, m.PreviousLongitude = latitude(position.From), longitude(position.From)
	}
	return m
}

func voteReceived(f *report.Filing, b report.Ballot) *event.VoteReceived {
	direction := event.Upvote
	if b.Vote == report.Downvote {
		direction = event.Downvote
	}
	return &event.VoteReceived{
		Subject: subject(f, f.Version, f.UpdatedAt),
		VoterID: b.Voter, VoteType: direction, NewScore: new(f.Score), CategoryID: f.Category.ID,
	}
}
