package open311

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

var (
	// errNotOurs says that a report is none of the department's: it was forwarded, or is hidden.
	errNotOurs = errors.New("the report is not the department's")
	// errRefused says that report-service will never take it.
	errRefused = errors.New("refused by the city")
	errOff     = errors.New("report-service takes no part in Open311: OPEN311 must be on")
)

// A City is report-service, as connections know it.
type City struct{ client *client.Client }

// NewCity returns report-service at an address.
func NewCity(address string) *City { return &City{client.New(address)} }

// changed returns a page of the department's reports that have changed since, or that
// became the department's.
func (c *City) changed(ctx context.Context, t *Target, since time.Time, cursor string) (page reportapi.ConnectedReports, err error) {
	query := url.Values{"updated_from": {stamp(since)}, "limit": {"100"}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	err = c.call(ctx, t, http.MethodGet, "/reports/connection?"+query.Encode(), nil, &page)
	return page, err
}

// report returns a report of the department.
func (c *City) report(ctx context.Context, t *Target, id uuid.UUID) (report reportapi.ConnectedReport, err error) {
	err = c.call(ctx, t, http.MethodGet, "/reports/"+id.String()+"/connection", nil, &report)
	return report, err
}

// history returns the changes of a report, the oldest first.
func (c *City) history(ctx context.Context, t *Target, id uuid.UUID) ([]reportapi.HistoryEntry, error) {
	var all reportapi.History
	err := c.call(ctx, t, http.MethodGet, "/reports/"+id.String()+"/history", nil, &all)
	return all.History, err
}

// setNumber says what a report is called in the target. Officials read the target's name,
// and by it the number is found again after the database was restored.
func (c *City) setNumber(ctx context.Context, t *Target, id uuid.UUID, number string) error {
	return c.call(ctx, t, http.MethodPut, "/reports/"+id.String()+"/external-ref", reportapi.NewExternalRef{Number: number, State: t.Name}, nil)
}

// update hands an update of the target on. One that is handed on again has no effect.
func (c *City) update(ctx context.Context, t *Target, id uuid.UUID, updateID, status, words string) error {
	return insist(ctx, func() error {
		err := c.client.SendForm(ctx, "/open311/v2/servicerequestupdates.json", url.Values{
			"api_key": {t.ConnectionKey}, "service_request_id": {id.String()}, "update_id": {updateID},
			"status": {strings.ToUpper(status)}, "description": {words},
		})
		if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusNotFound && e.Type != "" { // errors of Open311 are lists
			return errOff
		}
		return err
	})
}

func (c *City) call(ctx context.Context, t *Target, method, path string, in, out any) error {
	return insist(ctx, func() error { return c.client.As("", t.ConnectionKey).Do(ctx, method, path, in, out) })
}

// turnPause is how long a request waits beyond the limit of its connection.
const turnPause = time.Second

// insist makes a request that waits for its turn: the reports of a lane would otherwise each
// ask again and again.
func insist(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		switch client.StatusOf(err) {
		case http.StatusNotFound:
			return errNotOurs
		case http.StatusBadRequest:
			return errRefused
		case http.StatusTooManyRequests:
			if backoff.Sleep(ctx, turnPause) == nil {
				continue
			}
		}
		return err
	}
}
