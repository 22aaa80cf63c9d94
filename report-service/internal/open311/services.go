package open311

import (
	"encoding/xml"
	"net/http"
	"strconv"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// changeset is when what is said here changed last.
const changeset = "2026-11-29T00:00:00Z"

// The specifications of the two endpoints, which have one address: Open311's own, and the
// updates that mySociety has added.
const (
	geoReport = "http://wiki.open311.org/GeoReport_v2"
	updates   = "https://github.com/mysociety/fixmystreet/wiki/Open311-FMS---Proposed-differences-to-Open311"
)

type discovered struct {
	XMLName    xml.Name  `xml:"discovery" json:"-"`
	Changeset  string    `xml:"changeset" json:"changeset"`
	Contact    string    `xml:"contact" json:"contact"`
	KeyService string    `xml:"key_service" json:"key_service"`
	Endpoints  []address `xml:"endpoints>endpoint" json:"endpoints"`
}

type address struct {
	Specification string   `xml:"specification" json:"specification"`
	URL           string   `xml:"url" json:"url"`
	Changeset     string   `xml:"changeset" json:"changeset"`
	Type          string   `xml:"type" json:"type"`
	Formats       []string `xml:"formats>format" json:"formats"`
}

// discovery says where everything is.
func (h handlers) discovery(r *http.Request) (any, error) {
	origin, both := h.Origin(r), []string{asXML.contentType(), asJSON.contentType()}
	endpoint := address{geoReport, origin + "/open311/v2", changeset, "production", both}
	extended := endpoint
	extended.Specification = updates
	return discovered{
		Changeset: changeset,
		Contact:   printable(h.CityName) + ", " + origin + "/",
		KeyService: "Applications that only read need no key. A key for those that file reports, or send updates of them, is made by the city's operators: " +
			printable(h.CityName) + ", " + origin + "/",
		Endpoints: []address{endpoint, extended},
	}, nil
}

type offered struct {
	Code        string `xml:"service_code" json:"service_code"`
	Name        string `xml:"service_name" json:"service_name"`
	Description string `xml:"description" json:"description"`
	Metadata    bool   `xml:"metadata" json:"metadata"`
	Type        string `xml:"type" json:"type"`
	Keywords    string `xml:"keywords" json:"keywords"`
	Group       string `xml:"group" json:"group"`
}

// services lists the categories that take reports.
func (h handlers) services(r *http.Request) (any, error) {
	categories, err := h.Categories.List(r.Context())
	if err != nil {
		return nil, err
	}
	list := items[offered]{root: "services", item: "service"}
	for _, c := range categories.Categories {
		if c.Retired || !c.Accepts {
			continue
		}
		text := c.Text(h.Languages...)
		list.all = append(list.all, offered{
			Code: codeOf(c.ID), Name: printable(text.Name), Description: printable(text.Hint),
			Type: "realtime", Group: printable(text.Group),
		})
	}
	return list, nil
}

// A defined service has no attributes: nothing is asked beside place and words.
type defined struct {
	XMLName    xml.Name      `xml:"service_definition" json:"-"`
	Code       string        `xml:"service_code" json:"service_code"`
	Attributes items[string] `xml:"attributes" json:"attributes"`
}

// definition answers for a service that needs none, because clients ask anyway.
func (h handlers) definition(r *http.Request) (any, error) {
	category, err := h.service(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return defined{Code: codeOf(category.ID), Attributes: items[string]{root: "attributes"}}, nil
}

// service returns the category with a code, in use or not.
func (h handlers) service(r *http.Request, code string) (report.Category, error) {
	categories, err := h.Categories.List(r.Context())
	if err != nil {
		return report.Category{}, err
	}
	for _, c := range categories.Categories {
		if codeOf(c.ID) == code {
			return c, nil
		}
	}
	return report.Category{}, refuse(http.StatusNotFound, "service_code: there is no such service")
}

func codeOf(id int32) string { return strconv.Itoa(int(id)) }
