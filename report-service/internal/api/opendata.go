package api

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// OpenData are the reports that everybody sees, as files and as a feed.
type OpenData struct {
	City
	Reports *postgres.Reports
	Gates   Gates
}

// Operations are those on open data.
func (h OpenData) Operations() openapi.Operations {
	return openapi.Operations{
		"openDataCSV":     {Handler: h.openDataCSV, Timeout: service.Unlimited},
		"openDataGeoJSON": {Handler: h.openDataGeoJSON, Timeout: service.Unlimited},
		"openDataAtom":    {Handler: h.openDataAtom, Timeout: service.DefaultTimeout},
	}
}

// feedEntries is how many reports a feed has.
const feedEntries = 100

// openColumns are the first line of the public list as CSV.
var openColumns = []string{
	"id", "created_at", "updated_at", "status", "category_id", "category", "title", "description", "address", "latitude", "longitude", "score", "asset",
}

// openDataCSV handles GET /open-data/reports.csv.
func (h OpenData) openDataCSV(w http.ResponseWriter, r *http.Request) error {
	out := new(bytes.Buffer)
	lines := table{out, separators[r.URL.Query().Get("separator")]}
	return h.openData(w, r, out, openForm{
		contentType: "text/csv; charset=utf-8",
		begin:       func() { lines.begin(openColumns) },
		each:        func(v report.View) { lines.write(openLine(v)) },
		end:         func() {},
	})
}

func openLine(v report.View) []string {
	return service.Each(openColumns, func(column string) string { return cells[column](&v.Report) })
}

// openDataGeoJSON handles GET /open-data/reports.geojson.
func (h OpenData) openDataGeoJSON(w http.ResponseWriter, r *http.Request) error {
	out := new(bytes.Buffer)
	features, separator := json.NewEncoder(out), "\n"
	return h.openData(w, r, out, openForm{
		contentType: "application/geo+json",
		begin:       func() { _, _ = out.WriteString(`{"type":"FeatureCollection","features":[`) },
		each: func(v report.View) {
			_, _ = out.WriteString(separator)
			_ = features.Encode(openReportOf(v))
			separator = ","
		},
		end: func() { _, _ = out.WriteString("]}\n") },
	})
}

func openReportOf(v report.View) reportapi.OpenReport {
	o := reportapi.OpenReport{Type: reportapi.Feature, ID: v.ID, Properties: reportapi.OpenReportProperties{
		Title: v.Title, Description: v.Description, CategoryID: v.Category.ID, Category: v.Category.Name, Asset: v.Asset.Key, Address: v.Address,
		Status: reportapi.Status(v.Status), Score: v.Score, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
	}}
	if v.Position != nil {
		o.Geometry = &reportapi.Point{Type: reportapi.PointTypePoint, Coordinates: []float64{v.Position.Longitude, v.Position.Latitude}}
	}
	return o
}

// An openForm writes reports in one form of open data.
type openForm struct {
	contentType string
	begin, end  func()
	each        func(v report.View)
}

// openData answers with the reports that everybody sees and the query's filters show,
// oldest first, in a form that writes to out.
func (h OpenData) openData(w http.ResponseWriter, r *http.Request, out *bytes.Buffer, form openForm) error {
	filter, names, known, err := h.openFilter(w, r)
	if err != nil || known {
		return err
	}
	filter.Order = report.Oldest
	var page report.Page
	return sendParts(w, r, h.Gates.openData, out, parts{
		read: func(ctx context.Context, after *report.Cursor) (next *report.Cursor, err error) {
			page, err = h.Reports.List(ctx, filter, after, partSize, "")
			return page.Next, err
		},
		begin: func() {
			w.Header().Set("Content-Type", form.contentType)
			form.begin()
		},
		write: func() {
			for _, v := range page.Reports {
				v.Category.Name = names[v.Category.ID]
				form.each(v)
			}
			if page.Next == nil {
				form.end()
			}
		},
	})
}

// openFilter reads the query, and answers with 304 where the client has what it would get;
// known says that it did. names are the categories' names by their ids in the city's first
// language.
func (h OpenData) openFilter(w http.ResponseWriter, r *http.Request) (filter report.Filter, names map[int32]string, known bool, err error) {
	filter = readFilter(r)
	categories, err := h.Categories.List(r.Context())
	if err != nil {
		return filter, nil, false, err
	}
	var fingerprint string
	err = h.Gates.do(r.Context(), r, func(ctx context.Context) (err error) {
		fingerprint, err = h.fingerprint(ctx, r.URL.RawQuery, filter)
		return err
	})
	if err != nil {
		return filter, nil, false, err
	}
	names = make(map[int32]string, len(categories.Categories))
	for _, c := range categories.Categories {
		names[c.ID] = c.Text(h.Languages...).Name
	}
	tag := service.Tag(fmt.Appendf(nil, "%s %d %q %s", r.URL.Path, categories.Revision, h.Name, fingerprint))
	// Weak: a part may be of another moment than the fingerprint.
	return filter, names, service.AnsweredBefore(w, r, "W/"+tag), nil
}

// fingerprint reads the fingerprint of what a query shows. It looks at each report, so that
// those who ask for the same at the same time share one reading, which none of them ends.
func (h OpenData) fingerprint(ctx context.Context, query string, filter report.Filter) (string, error) {
	shared, err, _ := h.Gates.readings.Do(query, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), service.DefaultTimeout)
		defer cancel()
		return h.Reports.Fingerprint(ctx, filter)
	})
	fingerprint, _ := shared.(string)
	return fingerprint, err
}

// An atomFeed is a feed of RFC 4287.
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  atomAuthor  `xml:"author"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomAuthor struct {
	Name string `xml:"name"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomCategory struct {
	Term  string `xml:"term,attr"`
	Label string `xml:"label,attr"`
}

type atomEntry struct {
	ID         string         `xml:"id"`
	Title      string         `xml:"title"`
	Published  string         `xml:"published"`
	Updated    string         `xml:"updated"`
	Link       atomLink       `xml:"link"`
	Categories []atomCategory `xml:"category"`
	Summary    string         `xml:"summary"`
	Point      string         `xml:"http://www.georss.org/georss point,omitempty"` // latitude and longitude
}

// openDataAtom handles GET /open-data/reports.atom.
func (h OpenData) openDataAtom(w http.ResponseWriter, r *http.Request) error {
	filter, names, known, err := h.openFilter(w, r)
	if err != nil || known {
		return err
	}
	filter.Order = report.Changed
	var page report.Page
	err = h.Gates.do(r.Context(), r, func(ctx context.Context) (err error) {
		page, err = h.Reports.List(ctx, filter, nil, feedEntries, "")
		return err
	})
	if err != nil {
		return err
	}
	self := origin(r) + r.URL.RequestURI()
	feed := atomFeed{
		ID: self, Title: h.Name, Updated: time.Unix(0, 0).UTC().Format(time.RFC3339), // without an entry
		Author: atomAuthor{h.Name},
		Links:  []atomLink{{Rel: "self", Type: "application/atom+xml", Href: self}, {Rel: "alternate", Type: "text/html", Href: origin(r) + "/"}},
	}
	words := previewWords[previewLanguages(h.Languages)[0]]
	for i, v := range page.Reports {
		if i == 0 {
			feed.Updated = v.UpdatedAt.Format(time.RFC3339Nano)
		}
		feed.Entries = append(feed.Entries, atomEntryOf(v, names[v.Category.ID], words, origin(r)))
	}
	body, err := xml.Marshal(feed)
	if err != nil {
		return fmt.Errorf("encode feed: %w", err)
	}
	return send(w, "application/atom+xml; charset=utf-8", append([]byte(xml.Header), body...))
}

func atomEntryOf(v report.View, category string, words wordsOfPreview, origin string) atomEntry {
	e := atomEntry{
		ID: v.ID.URN(), Title: v.Title, Published: v.CreatedAt.Format(time.RFC3339Nano), Updated: v.UpdatedAt.Format(time.RFC3339Nano),
		Link: atomLink{Rel: "alternate", Type: "text/html", Href: origin + pathOf(v.ID)},
		Categories: []atomCategory{
			{Term: "category-" + strconv.Itoa(int(v.Category.ID)), Label: category},
			{Term: string(v.Status), Label: words.statuses[v.Status]},
		},
		Summary: words.describe(v, category),
	}
	if v.Position != nil {
		e.Point = decimal(v.Position.Latitude) + " " + decimal(v.Position.Longitude)
	}
	return e
}
