package open311

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/text"
)

const (
	// maxAnswer bounds what is read of an answer, of which a list may have many.
	maxAnswer = 16 << 20
	// maxReason bounds what operators read of an error.
	maxReason = 200
	// maxList is how many entries the specification lets a list without pages have.
	maxList = 1000
	// maxPages bounds what is read of a list at once.
	maxPages = 1000
	// requestTimeout bounds a request, as it does an attempt of a delivery.
	requestTimeout = 15 * time.Second
)

// answers have everything that is read of the answers of GeoReport v2, in XML: the form
// that every server has.
type answers struct {
	Requests []answered `xml:"request"`
	Updates  []Update   `xml:"request_update"`
	Errors   []struct {
		Description string `xml:"description"`
	} `xml:"error"`
}

type answered struct {
	Number string `xml:"service_request_id"`
	Token  string `xml:"token"`
	Status string `xml:"status"`
	All    []byte `xml:",innerxml"`
}

// An Update is what a target says of a request.
type Update struct {
	ID          string `xml:"update_id"`
	Number      string `xml:"service_request_id"`
	Status      string `xml:"status"`
	At          string `xml:"updated_datetime"`
	Description string `xml:"description"`
}

// at returns when the update was made, for their order: zero if that cannot be read.
func (u *Update) at() time.Time {
	at, _ := time.Parse(time.RFC3339, u.At)
	return at
}

// A Client speaks to targets.
type Client struct{ http *http.Client }

// file sends a request. An answer of ledger.ClassUncertain says that it may have arrived.
func (c *Client) file(ctx context.Context, t *Target, form url.Values) (answered, ledger.Answer) {
	var out answers
	a := c.call(ctx, t, http.MethodPost, "/requests", form, &out)
	if a.Verdict != ledger.Delivered {
		return answered{}, a
	}
	if len(out.Requests) == 0 || out.Requests[0].Number == "" && out.Requests[0].Token == "" {
		a.Verdict, a.Class, a.Error = ledger.Failed, ledger.ClassUncertain, "the answer has neither a number nor a token"
		return answered{}, a
	}
	return out.Requests[0], a
}

// token asks for the number of a token; "" if there is none yet.
func (c *Client) token(ctx context.Context, t *Target, token string) (string, ledger.Answer) {
	var out answers
	a := c.call(ctx, t, http.MethodGet, "/tokens/"+url.PathEscape(token), url.Values{}, &out)
	if len(out.Requests) == 0 {
		return "", a
	}
	return out.Requests[0].Number, a
}

// searched is how far around the time at which a request was sent it is searched.
const searched = 15 * time.Minute

// find searches for the request of a report that was sent at that time. Without one it
// says whether it would have been found: whether the target shows the ids of reports.
func (c *Client) find(ctx context.Context, t *Target, report string, sent time.Time) (number string, shown bool, a ledger.Answer) {
	values, seen := url.Values{"start_date": {stamp(sent.Add(-searched))}, "end_date": {stamp(sent.Add(searched))}}, make(map[string]bool)
	whole, a := c.pages(ctx, t, "/requests", values, func(page *answers) (entries int, more bool) {
		for _, request := range page.Requests {
			if bytes.Contains(request.All, []byte(report)) {
				number = request.Number
				return 0, false
			}
			shown = shown || bytes.Contains(request.All, []byte(idAttribute))
			more = more || !seen[request.Number]
			seen[request.Number] = true
		}
		return len(page.Requests), more
	})
	return number, shown && whole, a
}

// pages reads a list to the page that has nothing new: an empty one, one that a target without
// pages refuses, or the first again. take returns how many entries a page has, and whether one
// of them is new. whole says that all were listed: a target without pages leaves the oldest out.
func (c *Client) pages(ctx context.Context, t *Target, path string, values url.Values, take func(*answers) (entries int, more bool)) (whole bool, a ledger.Answer) {
	entries := 0
	for page := 1; page <= maxPages; page++ {
		if page > 1 {
			values.Set("page", strconv.Itoa(page))
		}
		var out answers
		more, next := false, c.call(ctx, t, http.MethodGet, path, values, &out)
		switch {
		case next.Verdict == ledger.Delivered:
			a = next
			entries, more = take(&out)
		case page == 1 || next.Status != http.StatusBadRequest && next.Status != http.StatusNotFound: // no end of the list
			return false, next
		}
		if !more {
			return entries < maxList, a
		}
	}
	return false, a
}

// statuses returns the statuses, open or closed, of those of the numbers that the target knows.
func (c *Client) statuses(ctx context.Context, t *Target, numbers []string) (map[string]string, ledger.Answer) {
	var out answers
	a := c.call(ctx, t, http.MethodGet, "/requests", url.Values{"service_request_id": {strings.Join(numbers, ",")}}, &out)
	known := make(map[string]string, len(out.Requests))
	for _, request := range out.Requests {
		known[request.Number] = plain(request.Status)
	}
	return known, a
}

// updates returns what the target says that it did between two times, in that order.
func (c *Client) updates(ctx context.Context, t *Target, from, to time.Time) ([]Update, ledger.Answer) {
	var all []Update
	values := url.Values{"start_date": {stamp(from)}, "end_date": {stamp(to)}}
	if t.Key != "" {
		values.Set("api_key", t.Key)
	}
	_, a := c.pages(ctx, t, "/servicerequestupdates", values, func(page *answers) (entries int, more bool) {
		more = slices.ContainsFunc(page.Updates, func(u Update) bool { return !slices.Contains(all, u) })
		all = append(all, page.Updates...)
		return len(page.Updates), more
	})
	slices.SortStableFunc(all, func(a, b Update) int { return a.at().Compare(b.at()) })
	return all, a
}

// sendStatus sends a target the status that the city gave to a request. One that is sent again
// counts once.
func (c *Client) sendStatus(ctx context.Context, t *Target, n Number, e reportapi.HistoryEntry) ledger.Answer {
	return c.call(ctx, t, http.MethodPost, "/servicerequestupdates", url.Values{
		"api_key": {t.UpdateKey}, "service_request_id": {n.Number}, "update_id": {fmt.Sprintf("%s-%d", n.Report, e.Version)},
		"status": {strings.ToUpper(extended[n.OurStatus])}, "description": {e.Note}, "updated_datetime": {stamp(e.ChangedAt)},
	}, new(answers))
}

// stamp returns a time as Open311 has it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// call makes one request and reads the answer into out. Delivered says that it is read.
func (c *Client) call(ctx context.Context, t *Target, method, path string, values url.Values, out *answers) ledger.Answer {
	if t.Jurisdiction != "" {
		values.Set("jurisdiction_id", t.Jurisdiction)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	posts := method == http.MethodPost
	address, body := t.URL+path+".xml", values.Encode()
	if !posts && body != "" {
		address, body = address+"?"+body, ""
	}
	req, err := http.NewRequestWithContext(traced, method, address, strings.NewReader(body))
	if err != nil {
		return ledger.Answer{Verdict: ledger.Refused, Class: "url", Error: "the address is not a URL"}
	}
	req.Header.Set("User-Agent", "CityConnect-Open311/1")
	if posts {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		a := ledger.Unanswered(ctx, err)
		if posts && connected.Load() && a.Class != ledger.ClassAddressRefused {
			a.Verdict, a.Class = ledger.Failed, ledger.ClassUncertain
		}
		return a
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = xml.Unmarshal(content, out)
	}
	a := ledger.AnswerOf(resp)
	if a.Verdict == ledger.Gone { // people repair it: its reports wait
		a.Verdict = ledger.Failed
	}
	if a.Verdict != ledger.Delivered {
		if len(out.Errors) > 0 {
			a.Error = text.Shorten(text.CleanLine(strings.ToValidUTF8(out.Errors[0].Description, "")), maxReason)
		}
		if posts && mayHaveArrived(resp.StatusCode) {
			a.Class = ledger.ClassUncertain
		}
		return a
	}
	if err != nil {
		a.Verdict, a.Class, a.Error = ledger.Failed, "answer", "the answer is not the XML of GeoReport v2"
		if posts {
			a.Class = ledger.ClassUncertain
		}
	}
	return a
}

// mayHaveArrived reports whether a request that was answered so may have had its effect:
// a server, or one before it, failed after it had it.
func mayHaveArrived(status int) bool {
	return status >= 500 && status != http.StatusServiceUnavailable || status == http.StatusRequestTimeout
}

// saysNothing reports whether a search that was answered so shows that the target cannot be
// searched. Other failures are of the moment.
func saysNothing(a ledger.Answer) bool {
	switch a.Status {
	case 0, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return true
}
