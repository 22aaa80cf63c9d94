package open311_test

import (
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
	"testing"
	"time"
)

// element is an element of XML as a reader without a schema sees it.
type element struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

// all returns the children with a name.
func (e element) all(name string) (found []element) {
	for _, child := range e.Children {
		if child.XMLName.Local == name {
			found = append(found, child)
		}
	}
	return found
}

// at returns the text at a path of names.
func (e element) at(names ...string) string {
	for _, name := range names {
		children := e.all(name)
		if len(children) == 0 {
			return ""
		}
		e = children[0]
	}
	return strings.TrimSpace(e.Text)
}

// described is a discovery in JSON.
type described struct {
	Changeset, Contact string
	KeyService         string `json:"key_service"`
	Endpoints          []struct {
		Specification, URL, Changeset, Type string
		Formats                             []string
	}
}

// The public validator of SeeClickFix has these rules, 22 with those that it has of both
// formats. It reads XML without a schema: a list with one item is not a list for it.
func TestRulesOfTheValidator(t *testing.T) {
	t.Parallel()
	h := newCity().serve(t)
	asXML, asJSON := ask(h, "/discovery.xml", nil), ask(h, "/discovery.json", nil)
	var x element
	var j described
	if err := xml.Unmarshal(asXML.Body.Bytes(), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(asJSON.Body.Bytes(), &j); err != nil {
		t.Fatal(err)
	}
	endpoints := x.all("endpoints")[0].all("endpoint")
	isTime := func(s string) bool { v, err := time.Parse(time.RFC3339, s); return err == nil && v.Before(time.Now()) }
	var services element
	if err := xml.Unmarshal(ask(h, "/v2/services.xml", nil).Body.Bytes(), &services); err != nil {
		t.Fatal(err)
	}
	var listed []map[string]any
	if err := json.Unmarshal(ask(h, "/v2/services.json", nil).Body.Bytes(), &listed); err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{
		"both formats answer":                      asXML.Code == 200 && asJSON.Code == 200,
		"the types are bare":                       asXML.Header().Get("Content-Type") == "text/xml" && asJSON.Header().Get("Content-Type") == "application/json",
		"both have a contact":                      x.at("contact") != "" && j.Contact != "",
		"both have the same contact":               x.at("contact") == j.Contact,
		"both say where keys come from":            x.at("key_service") != "" && j.KeyService != "",
		"the changeset is a time":                  isTime(x.at("changeset")) && isTime(j.Changeset),
		"the endpoints are a list in XML":          len(endpoints) > 1,
		"there is an endpoint":                     len(j.Endpoints) > 0,
		"there is a service in both formats":       len(services.all("service")) > 0 && len(listed) == len(services.all("service")),
		"each service has a code in XML":           !slices.ContainsFunc(services.all("service"), func(e element) bool { return e.at("service_code") == "" }),
		"each service has a code that is a string": !slices.ContainsFunc(listed, func(s map[string]any) bool { return s["service_code"].(string) == "" }),
		"no service has attributes":                !slices.ContainsFunc(listed, func(s map[string]any) bool { return s["metadata"] != false }),
		"something is answered to a POST":          ask(h, "/v2/requests.xml", form()).Body.Len() > 0 && ask(h, "/v2/requests.json", form()).Body.Len() > 0,
	}
	for i, e := range endpoints {
		of := j.Endpoints[i]
		formats := e.all("formats")[0].all("format")
		for rule, kept := range map[string]bool{
			"a specification":        e.at("specification") != "" && of.Specification != "",
			"an address":             strings.HasPrefix(e.at("url"), "https://") && of.URL == e.at("url"),
			"a changeset":            e.at("changeset") != "" && of.Changeset != "",
			"one that is a time":     isTime(e.at("changeset")) && isTime(of.Changeset),
			"a type":                 e.at("type") != "" && of.Type != "",
			"a list of formats":      len(formats) > 1 && len(of.Formats) > 1,
			"formats that are known": strings.HasPrefix(formats[0].Text, "text/") && slices.Contains(of.Formats, "application/json"),
			"XML among them":         slices.ContainsFunc(formats, func(f element) bool { return f.Text == "text/xml" }) && slices.Contains(of.Formats, "text/xml"),
		} {
			rules["each endpoint has "+rule] = rules["each endpoint has "+rule] || kept
			if !kept {
				t.Errorf("endpoint %d has not %s", i, rule)
			}
		}
	}
	for rule, kept := range rules {
		if !kept {
			t.Errorf("broken: %s", rule)
		}
	}
	if len(rules) < 21 {
		t.Errorf("%d rules", len(rules))
	}
}

// FixMyStreet's client reads XML by the names of these elements; it needs a position, and
// drops what lies outside of the window that it asked for.
func TestFixMyStreetsClient(t *testing.T) {
	t.Parallel()
	c := newCity()
	h := c.serve(t)
	read := func(path, root, item string) []element {
		var e element
		w := ask(h, path, nil)
		if err := xml.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != 200 || e.XMLName.Local != root {
			t.Fatalf("%s: %d, error %v: %s", path, w.Code, err, w.Body)
		}
		return e.all(item)
	}
	if s := read("/v2/services.xml?jurisdiction_id=bogor.go.id", "services", "service"); len(s) != 2 || s[0].at("service_name") != "Roads & potholes" || s[0].at("metadata") != "false" {
		t.Errorf("services %+v", s)
	}
	requests := read("/v2/requests.xml?jurisdiction_id=bogor.go.id&start_date=2026-11-27T11:00:00Z&end_date=2026-11-27T12:00:00Z", "service_requests", "request")
	if len(requests) != 2 {
		t.Fatalf("requests %+v", requests)
	}
	if r := requests[0]; r.at("service_request_id") != hole.String() || r.at("lat") != "-6.9147" || r.at("long") != "107.6098" || r.at("status") != "closed" ||
		r.at("updated_datetime") != "2026-11-27T12:00:00Z" || r.at("requested_datetime") != "2026-11-27T11:00:00Z" ||
		r.at("description") != "Hole <deep> & wide\n\nAt the crossing.\nSince Monday." || r.at("media_url") == "" {
		t.Errorf("request %+v", r)
	}
	if r := requests[1]; r.at("status") != "open" || r.at("lat") != "" || len(r.all("lat")) != 1 {
		t.Errorf("a request without a position has an empty element: %+v", r)
	}
	seen := map[string]bool{}
	for i, u := range read("/v2/servicerequestupdates.xml?api_key="+key, "service_request_updates", "request_update") {
		if _, err := time.Parse(time.RFC3339, u.at("updated_datetime")); err != nil || seen[u.at("update_id")] {
			t.Errorf("update %+v, error %v", u, err)
		}
		seen[u.at("update_id")] = true
		if want := []string{"IN_PROGRESS", "NO_FURTHER_ACTION"}[i]; u.at("status") != want {
			t.Errorf("status %s, want %s", u.at("status"), want)
		}
	}
	var posted element
	if err := xml.Unmarshal(ask(h, "/v2/requests.xml", form()).Body.Bytes(), &posted); err != nil || posted.at("request", "service_request_id") != c.filed[0].ID.String() {
		t.Errorf("after a POST %+v, error %v", posted, err)
	}
	var refused element
	wrong := form()
	wrong.Set("api_key", "x")
	if err := xml.Unmarshal(ask(h, "/v2/requests.xml", wrong).Body.Bytes(), &refused); err != nil || refused.at("error", "code") != "403" || refused.at("error", "description") == "" {
		t.Errorf("refused with %+v, error %v", refused, err)
	}
}
