package api

import (
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// problems maps the kinds of faults that only this service has to the problems
// that clients see.
var problems = map[fault.Kind]service.ProblemType{
	report.OwnReport:         {Status: http.StatusForbidden, Name: "own-report", Title: "The report is your own"},
	report.Closed:            {Status: http.StatusConflict, Name: "report-closed", Title: "The report is closed"},
	report.IllegalTransition: {Status: http.StatusConflict, Name: "illegal-transition", Title: "The status does not lead there"},
	report.Stale:             {Status: http.StatusPreconditionFailed, Name: "stale-version", Title: "It has changed since that version"},
	report.Signpost:          {Status: http.StatusConflict, Name: "signpost", Title: "The city does not handle this by reports"},
	report.KeyReused:         {Status: http.StatusUnprocessableEntity, Name: "idempotency-key-reused", Title: "The key belongs to another request"},
	report.StillRunning:      {Status: http.StatusConflict, Name: "request-running", Title: "The same request is running", RetryAfter: time.Second},
	report.NotPending:        {Status: http.StatusConflict, Name: "not-pending", Title: "The report is no longer pending"},
	report.StaysPrivate:      {Status: http.StatusConflict, Name: "stays-private", Title: "The report stays private"},
	report.AskedAlready:      {Status: http.StatusConflict, Name: "question-open", Title: "A question is open already"},
	report.NotAsked:          {Status: http.StatusConflict, Name: "no-question", Title: "No question is open"},
	report.NoVerdict:         {Status: http.StatusConflict, Name: "no-verdict", Title: "Nobody asks whether the report is fixed"},
	report.DisputedBefore:    {Status: http.StatusConflict, Name: "disputed-before", Title: "The resolution was disputed before"},
	report.NotDisputed:       {Status: http.StatusConflict, Name: "not-disputed", Title: "The report is not disputed"},
	report.PhotoNeeded:       {Status: http.StatusConflict, Name: "photo-needed", Title: "The report needs a photo of the finished work"},
	report.Hidden:            {Status: http.StatusConflict, Name: "report-hidden", Title: "The report is hidden"},
	report.NotReporter:       {Status: http.StatusForbidden, Name: "not-reporter", Title: "The report is not yours"},
	report.OtherDepartment:   {Status: http.StatusForbidden, Name: "other-department", Title: "The report belongs to another department"},
	report.ModeratorsOnly:    {Status: http.StatusForbidden, Name: "moderators-only", Title: "Only moderators may do this"},
	report.TooManyPhotos:     {Status: http.StatusConflict, Name: "too-many-photos", Title: "The report has as many photos as it may have"},
	report.PhotoQuota:        {Status: http.StatusTooManyRequests, Name: "photo-quota", Title: "Too many photos within a day", RetryAfter: time.Hour},
	report.OtherPhoto:        {Status: http.StatusConflict, Name: "other-photo", Title: "The id belongs to another picture"},
	report.NoPhotos:          {Status: http.StatusNotFound, Name: "no-photos", Title: "Reports have no photos here"},
	report.NoComments:        {Status: http.StatusNotFound, Name: "no-comments", Title: "Reports have no comments here"},
	report.StorageFull:       {Status: http.StatusInsufficientStorage, Name: "storage-full", Title: "There is no room for photos"},
	report.NoGuests:          {Status: http.StatusNotFound, Name: "no-guests", Title: "Nobody reports without an account here"},
	report.NoGuest:           {Status: http.StatusNotFound, Name: "no-guest", Title: "There is no guest to take over"},
	report.GuestsClosed:      {Status: http.StatusForbidden, Name: "guests-closed", Title: "Reporting without an account is closed"},
	report.NotForGuests:      {Status: http.StatusForbidden, Name: "not-for-guests", Title: "This needs another kind of session"},
	report.SignedIn:          {Status: http.StatusConflict, Name: "signed-in", Title: "Somebody is signed in"},
	report.UnknownCode:       {Status: http.StatusNotFound, Name: "unknown-code", Title: "There is no such code"},
	report.UsedCode:          {Status: http.StatusConflict, Name: "used-code", Title: "The code has been used"},
	report.ExpiredCode:       {Status: http.StatusGone, Name: "expired-code", Title: "The code has expired"},
	report.AdoptedElsewhere:  {Status: http.StatusConflict, Name: "adopted-elsewhere", Title: "Another account has these reports"},
	outbox.NotFailed:         {Status: http.StatusConflict, Name: "not-failed", Title: "The message has not failed"},
}
