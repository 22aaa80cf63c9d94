package open311

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Limits of lists, as the specification has them.
const (
	maxPage    = 1000
	lastDays   = 90 * 24 * time.Hour
	lastWindow = 24 * time.Hour // of updates: clients ask for the last hours
	maxPages   = 1000
	maxRadius  = 50_000 // metres
)

type requested struct {
	ID            string   `xml:"service_request_id" json:"service_request_id"`
	Status        string   `xml:"status" json:"status"`
	StatusNotes   optional `xml:"status_notes" json:"status_notes"`
	ServiceName   string   `xml:"service_name" json:"service_name"`
	ServiceCode   string   `xml:"service_code" json:"service_code"`
	Description   string   `xml:"description" json:"description"`
	Agency        optional `xml:"agency_responsible" json:"agency_responsible"`
	ServiceNotice optional `xml:"service_notice" json:"service_notice"`
	Requested     string   `xml:"requested_datetime" json:"requested_datetime"`
	Updated       string   `xml:"updated_datetime" json:"updated_datetime"`
	Expected      optional `xml:"expected_datetime" json:"expected_datetime"`
	Address       optional `xml:"address" json:"address"`
	AddressID     optional `xml:"address_id" json:"address_id"`
	Zipcode       optional `xml:"zipcode" json:"zipcode"`
	Asset         optional `xml:"asset" json:"asset"`
	Latitude      degree   `xml:"lat" json:"lat"`
	Longitude     degree   `xml:"long" json:"long"`
	MediaURL      optional `xml:"media_url" json:"media_url"`
}

// statuses are those of reports by those of Open311.
var statuses = map[string][]report.Status{
	"open": {report.Pending, report.InProgress}, "closed": {report.Resolved, report.Rejected},
}

// statusOf returns the status of Open311, which has two.
func statusOf(s report.Status) string {
	if s.Closed() {
		return "closed"
	}
	return "open"
}

// requests lists reports.
func (h handlers) requests(r *http.Request) (any, error) {
	q, err := readRequestQuery(r.URL)
	if err != nil {
		return nil, err
	}
	return h.list(r, q)
}

// request answers with one report, in a list.
func (h handlers) request(r *http.Request) (any, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return nil, errNoRequest
	}
	list, err := h.list(r, report.RequestQuery{IDs: []uuid.UUID{id}, Limit: 1})
	if err == nil && len(list.all) == 0 {
		err = errNoRequest
	}
	return list, err
}

var errNoRequest = refuse(http.StatusNotFound, "service_request_id: there is no such request")

// A filed request is what a POST and a token are answered with.
type filed struct {
	ID      string   `xml:"service_request_id" json:"service_request_id"`
	Token   optional `xml:"token" json:"token"`
	Notice  optional `xml:"service_notice" json:"service_notice"`
	Account optional `xml:"account_id" json:"account_id"`
}

// token answers with the id of a request: it is its own token, since every request has an
// id at once.
func (h handlers) token(r *http.Request) (any, error) {
	found, err := h.request(r)
	if err != nil {
		return nil, err
	}
	id := found.(items[requested]).all[0].ID
	return items[filed]{"service_requests", "request", []filed{{ID: id, Token: optional(id)}}}, nil
}

// list returns the reports that q asks for.
func (h handlers) list(r *http.Request, q report.RequestQuery) (items[requested], error) {
	list := items[requested]{root: "service_requests", item: "request"}
	categories, err := h.Categories.List(r.Context())
	if err != nil {
		return list, err
	}
	names := make(map[int32]string, len(categories.Categories))
	for _, c := range categories.Categories {
		names[c.ID] = printable(c.Text(h.Languages...).Name)
	}
	var found []report.ServiceRequest
	err = h.Costly(r.Context(), r, func(ctx context.Context) (err error) {
		found, err = h.Store.Requests(ctx, q)
		return err
	})
	if err != nil {
		return list, err
	}
	origin := h.Origin(r)
	list.all = make([]requested, len(found))
	for i, f := range found {
		list.all[i] = requestedOf(f, names[f.Category.ID], origin)
	}
	return list, nil
}

func requestedOf(f report.ServiceRequest, service, origin string) requested {
	out := requested{
		ID: f.ID.String(), Status: statusOf(f.Status), StatusNotes: optional(printable(f.Note)),
		ServiceName: service, ServiceCode: codeOf(f.Category.ID), Description: printable(join(f.Title, f.Description)),
		Requested: w3c(f.CreatedAt), Updated: w3c(f.UpdatedAt), Address: optional(printable(f.Address)), Asset: optional(f.Asset.Key),
	}
	if f.Position != nil {
		out.Latitude.value, out.Longitude.value = &f.Position.Latitude, &f.Position.Longitude
	}
	if len(f.Photos) > 0 {
		out.MediaURL = optional(origin + "/photos/" + f.Photos[0].String() + "/1024.jpg")
	}
	return out
}

// join returns the title and the story of a report as one text.
func join(title, description string) string {
	switch {
	case description == "":
		return title
	case strings.HasPrefix(description, strings.TrimSuffix(title, "…")): // it was made of it
		return description
	}
	return title + "\n\n" + description
}

type updated struct {
	ID          string   `xml:"update_id" json:"update_id"`
	RequestID   string   `xml:"service_request_id" json:"service_request_id"`
	Status      string   `xml:"status" json:"status"`
	Updated     string   `xml:"updated_datetime" json:"updated_datetime"`
	Description string   `xml:"description" json:"description"`
	MediaURL    optional `xml:"media_url" json:"media_url"`
}

// extended are the statuses of updates by those of reports.
var extended = map[report.Status]string{
	report.Pending: "OPEN", report.InProgress: "IN_PROGRESS", report.Resolved: "FIXED", report.Rejected: "NO_FURTHER_ACTION",
}

// updateID returns the id of the update that made a version of a report.
func updateID(id uuid.UUID, version int64) string { return fmt.Sprintf("%s-%d", id, version) }

// updates lists what officials did and said.
func (h handlers) updates(r *http.Request) (any, error) {
	q, err := readUpdateQuery(r.URL)
	if err != nil {
		return nil, err
	}
	var found []report.RequestUpdate
	err = h.Costly(r.Context(), r, func(ctx context.Context) (err error) {
		found, err = h.Store.Updates(ctx, q)
		return err
	})
	list := items[updated]{root: "service_request_updates", item: "request_update"}
	for _, u := range found {
		list.all = append(list.all, updated{
			ID: updateID(u.ReportID, u.Version), RequestID: u.ReportID.String(), Status: extended[u.Status],
			Updated: w3c(u.At), Description: printable(u.Note),
		})
	}
	return list, err
}

// A parameters reader keeps the first error.
type parameters struct {
	values url.Values
	err    error
}

func readParameters(u *url.URL) *parameters {
	values, err := url.ParseQuery(u.RawQuery)
	p := &parameters{values: values}
	if err != nil {
		p.err = refuse(http.StatusBadRequest, "the query must be encoded as in application/x-www-form-urlencoded")
	}
	return p
}

func (p *parameters) fail(name, must string) {
	if p.err == nil {
		p.err = refuse(http.StatusBadRequest, name+": must be "+must)
	}
}

// list returns the values of a parameter, which are joined by commas or repeated.
func (p *parameters) list(name string) []string {
	var list []string
	for _, value := range p.values[name] {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

// looseTime has the spellings of a time (ISO 8601) that programs send: with and without
// separators, seconds and their fractions, and with the zone in full, in hours or left out.
// A plus that was not escaped arrives as a space.
var looseTime = regexp.MustCompile(`(?i)^(\d{4})-?(\d\d)-?(\d\d)(?:[t ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?)?(?: ?(z|utc|gmt)|([ +-])(\d\d)(?::?(\d\d))?)?$`)

// time returns the time in a parameter, zero for none.
func (p *parameters) time(name string) time.Time {
	text := strings.TrimSpace(p.values.Get(name))
	if text == "" {
		return time.Time{}
	}
	if part := looseTime.FindStringSubmatch(text); part != nil {
		or := func(i int) string { return cmp.Or(part[i], "00") }
		zone := "Z"
		if part[9] != "" {
			zone = strings.ReplaceAll(part[8], " ", "+") + part[9] + ":" + or(10)
		}
		t, err := time.Parse(time.RFC3339, fmt.Sprintf("%s-%s-%sT%s:%s:%s%s", part[1], part[2], part[3], or(4), or(5), or(6), zone))
		if err == nil {
			return t.UTC()
		}
	}
	p.fail(name, "a time such as 2026-11-27T08:00:00Z")
	return time.Time{}
}

// integer returns the number in a parameter from 1 to most, or without one missing.
func (p *parameters) integer(name string, missing, most int) int {
	text := p.values.Get(name)
	if text == "" {
		return missing
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.fail(name, fmt.Sprintf("a number from 1 to %d", most))
		return missing
	}
	return n
}

// number returns the number in a parameter from least to most; ok is false without one.
func (p *parameters) number(name string, least, most float64) (n float64, ok bool) {
	text := strings.TrimSpace(p.values.Get(name))
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= least && n <= most) { // nor is it NaN
		p.fail(name, fmt.Sprintf("a number from %g to %g", least, most))
		return 0, false
	}
	return n, true
}

// position returns the place in lat and long, nil for none.
func (p *parameters) position() *report.Position {
	latitude, hasLatitude := p.number("lat", -90, 90)
	longitude, hasLongitude := p.number("long", -180, 180)
	switch {
	case hasLatitude && hasLongitude:
		return report.NewPosition(latitude, longitude)
	case hasLatitude:
		p.fail("long", "there beside lat")
	case hasLongitude:
		p.fail("lat", "there beside long")
	}
	return nil
}

// ids returns the ids of requests; nil for none. What is not an id names no request.
func (p *parameters) ids() []uuid.UUID {
	texts := p.list("service_request_id")
	if len(texts) == 0 {
		return nil
	}
	if len(texts) > maxPage {
		p.fail("service_request_id", fmt.Sprintf("at most %d ids", maxPage))
	}
	ids := []uuid.UUID{}
	for _, text := range texts {
		if id, err := uuid.Parse(text); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// page returns the part of a list that is asked for.
func (p *parameters) page() (limit, offset int) {
	limit = p.integer("page_size", maxPage, maxPage)
	return limit, (p.integer("page", 1, maxPages) - 1) * limit
}

// readRequestQuery reads which reports are asked for. Ids override everything else.
func readRequestQuery(u *url.URL) (q report.RequestQuery, err error) {
	p := readParameters(u)
	q.Limit, q.Offset = p.page()
	if q.IDs = p.ids(); q.IDs != nil {
		return q, p.err
	}
	for _, name := range p.list("status") {
		of, ok := statuses[strings.ToLower(name)]
		if !ok {
			p.fail("status", "open, closed or both with a comma between them")
		}
		q.Filter.Statuses = append(q.Filter.Statuses, of...)
	}
	for _, code := range p.list("service_code") {
		id, err := strconv.ParseInt(code, 10, 32)
		if err != nil {
			id = 0 // no category has it
		}
		q.Filter.Categories = append(q.Filter.Categories, int32(id))
	}
	q.Filter.FiledFrom, q.Filter.FiledTo, q.ChangedFrom = p.time("start_date"), p.time("end_date"), p.time("updated_after")
	if q.Filter.FiledFrom.IsZero() && q.Filter.FiledTo.IsZero() && q.ChangedFrom.IsZero() {
		q.Filter.FiledFrom = time.Now().Add(-lastDays)
	}
	if q.Near = p.position(); q.Near != nil {
		var ok bool
		if q.Radius, ok = p.number("radius", 0, maxRadius); !ok {
			p.fail("radius", "there, in metres, beside lat and long")
		}
	}
	if text := p.values.Get("q"); text != "" {
		if q.Filter.Words = report.Words(text); len(q.Filter.Words) == 0 { // nothing but punctuation
			q.IDs = []uuid.UUID{}
		}
	}
	return q, p.err
}

// readUpdateQuery reads which updates are asked for.
func readUpdateQuery(u *url.URL) (q report.UpdateQuery, err error) {
	p := readParameters(u)
	q.Limit, q.Offset = p.page()
	q.IDs, q.From, q.To = p.ids(), p.time("start_date"), p.time("end_date")
	if q.IDs == nil && q.From.IsZero() && q.To.IsZero() {
		q.From = time.Now().Add(-lastWindow)
	}
	return q, p.err
}
