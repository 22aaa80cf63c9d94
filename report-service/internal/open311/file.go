package open311

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/text"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Limits of texts: those of the specification, and of reports.
const (
	maxDescription = 4000
	maxTitle       = 120 // of the first line, beyond which it is a story and not a title
	maxAddress     = 300
	maxForm        = 64 << 10
)

// file files a report for an application.
func (h handlers) file(r *http.Request) (any, error) {
	form, err := readForm(r)
	if err != nil {
		return nil, err
	}
	application, err := h.application(r.Context(), form.Get("api_key"))
	if err != nil {
		return nil, err
	}
	if wait := h.filing.Take(application.String()); wait > 0 {
		tooMany := service.TooManyRequests
		tooMany.RetryAfter = wait
		return nil, tooMany.New("too many requests with this api_key")
	}
	id, err := h.fileFor(r, application, form)
	if err != nil {
		p := h.Errors.Problem(r, err)
		if p.Status >= http.StatusInternalServerError {
			h.filing.GiveBack(application.String()) // it was not the application's fault
		}
		return nil, p
	}
	notice := optional(h.Origin(r) + "/reports/" + id.String())
	return items[filed]{"service_requests", "request", []filed{{ID: id.String(), Notice: notice}}}, nil
}

// readForm returns the parameters of a POST, in its body or its query.
func readForm(r *http.Request) (url.Values, error) {
	err := r.ParseMultipartForm(maxForm)
	if r.MultipartForm != nil {
		defer func() { _ = r.MultipartForm.RemoveAll() }() // files are not taken
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return nil, refuse(http.StatusBadRequest, "the body must be application/x-www-form-urlencoded or multipart/form-data")
	}
	return r.Form, nil
}

// application returns whose key it is.
func (h handlers) application(ctx context.Context, key string) (uuid.UUID, error) {
	if key == "" {
		return uuid.Nil, refuse(http.StatusForbidden, "api_key: must be there; the city's operators make one")
	}
	id, err := h.Store.Application(ctx, report.HashKey(key))
	if errors.Is(err, report.ErrNoApplication) {
		return id, refuse(http.StatusForbidden, "api_key: must be a key of this city that is not revoked")
	}
	return id, err
}

// running is how long a request waits for the same one, which is being filed.
var running = backoff.Backoff{First: 20 * time.Millisecond, Max: 200 * time.Millisecond}

// fileFor returns the id of the report that form describes. The same form of the same
// application is filed once a day, however often it is sent: clients send it again when
// they got no answer. Two people who report the same differ in what their application
// says about them, of which nothing but this keyed hash is kept.
func (h handlers) fileFor(r *http.Request, application uuid.UUID, form url.Values) (uuid.UUID, error) {
	filing, err := h.read(r, form)
	if err != nil {
		return uuid.Nil, err
	}
	filing.Application = application
	form.Del("api_key")
	digest := sha256.Sum256([]byte(form.Encode())) // in the order of the names
	stored, err := json.Marshal(map[string]uuid.UUID{"id": filing.ID})
	if err != nil {
		return uuid.Nil, fmt.Errorf("encode answer: %w", err)
	}
	// No client's own key has a space. What Request would compare is in the key.
	idempotent := &report.Idempotent{UserID: application.String(), Key: "open311 " + hex.EncodeToString(digest[:]), Response: stored}
	for wait := running; ; {
		earlier, err := h.Filer.Create(r.Context(), &filing, idempotent)
		switch {
		case fault.KindOf(err) == report.StillRunning:
			if backoff.Sleep(r.Context(), wait.Next()) != nil {
				return uuid.Nil, service.Unavailable.New("the same request is being filed")
			}
			continue
		case err != nil:
			return uuid.Nil, fmt.Errorf("file a report: %w", err)
		case earlier == nil:
			return filing.ID, nil
		}
		var first struct{ ID uuid.UUID }
		if err := json.Unmarshal(earlier, &first); err != nil {
			return uuid.Nil, fmt.Errorf("read stored answer: %w", err)
		}
		return first.ID, nil
	}
}

// read makes a report of what an application sends. It takes the place, the words and the
// service, and drops who the sender is and what else there may be.
func (h handlers) read(r *http.Request, form url.Values) (report.Filing, error) {
	p := &parameters{values: form}
	place := p.position()
	street := p.line("address_string", maxAddress)
	title := text.Shorten(p.line("attribute[title]", maxDescription), maxTitle)
	story := p.block("description", maxDescription)
	if p.err != nil {
		return report.Filing{}, p.err
	}
	code := strings.TrimSpace(form.Get("service_code"))
	switch {
	case code == "":
		return report.Filing{}, refuse(http.StatusBadRequest, "service_code: must be there")
	case place == nil && street == "" && form.Get("address_id") != "":
		return report.Filing{}, refuse(http.StatusBadRequest, "address_id: must come with lat and long, or with address_string; the city has no ids of addresses")
	case place == nil && street == "":
		return report.Filing{}, refuse(http.StatusBadRequest, "lat, long: must be there, or else address_string")
	}
	category, err := h.service(r, code)
	if err != nil {
		return report.Filing{}, err
	}
	area, err := h.AreaAt(r.Context(), place)
	if err != nil {
		return report.Filing{}, fmt.Errorf("find area: %w", err)
	}
	if err := category.In(area.At(place)).Usable(h.Languages...); err != nil {
		return report.Filing{}, refuse(http.StatusBadRequest, "service_code: "+err.Error())
	}
	if err := report.CheckPosition(place, h.City); err != nil {
		return report.Filing{}, err
	}
	// Other cities' clients have attributes of the same name, which mean something else.
	thing, _, err := h.Filer.Asset(r.Context(), strings.TrimSpace(form.Get("attribute[asset]")))
	if err != nil && !errors.Is(err, report.ErrNoAsset) {
		return report.Filing{}, fmt.Errorf("find thing: %w", err)
	} else if err != nil {
		thing = report.Asset{}
	}
	if first, rest := titleOf(story); title == "" {
		title, story = first, rest
	} else if fixMyStreet.MatchString(story) {
		story = rest
	}
	return report.New(report.Report{
		Title: cmp.Or(title, category.Text(h.Languages...).Name), Description: story, Category: category,
		Position: place, Area: area, Asset: thing, Address: street, Privacy: report.Anonymous,
	}, report.Reporter{}, time.Now())
}

// titleOf splits a story into its first line and the rest, as clients without titles
// write. A first line that is too long stays, and its beginning is the title. FixMyStreet
// marks both, and adds where it has the report, and its name.
func titleOf(story string) (title, rest string) {
	if parts := fixMyStreet.FindStringSubmatch(strings.TrimSpace(story)); parts != nil {
		story = strings.Join(strings.Fields(parts[1]), " ") + "\n" + parts[2]
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(story), "\n")
	if utf8.RuneCountInString(first) > maxTitle {
		return text.Shorten(first, maxTitle-1) + "…", strings.TrimSpace(story)
	}
	return first, strings.TrimSpace(rest)
}

// fixMyStreet is the form of its descriptions, in which what begins with url is left out.
var fixMyStreet = regexp.MustCompile(`(?s)^title:(.*?)\n\s*detail:(.*?)(?:\n\s*url:.*)?$`)

// line returns a text of one line, without what nobody sees.
func (p *parameters) line(name string, most int) string { return p.text(name, most, text.CleanLine) }

// block returns a text of several lines, likewise.
func (p *parameters) block(name string, most int) string { return p.text(name, most, text.CleanBlock) }

func (p *parameters) text(name string, most int, clean func(string) string) string {
	s := p.values.Get(name)
	if err := text.CheckKept(s); err != nil && p.err == nil {
		p.err = refuse(http.StatusBadRequest, name+": "+err.Error())
	}
	if p.err != nil {
		return ""
	}
	s = clean(s)
	if utf8.RuneCountInString(s) > most {
		p.fail(name, fmt.Sprintf("at most %d characters long", most))
	}
	return s
}
