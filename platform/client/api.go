package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/notificationapi"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// The types that the operations take and return, as the OpenAPI documents describe them. Those
// of all other operations are in reportapi and notificationapi, for Do.
type (
	// A NewReport is a report to be filed.
	NewReport = reportapi.NewReport
	// A PrivacyLevel is public or anonymous.
	PrivacyLevel = reportapi.PrivacyLevel
	// A Visibility is public or officials.
	Visibility = reportapi.Visibility
	// A Report is a report as its reader may see it.
	Report = reportapi.Report
	// A VoteResult is what a vote led to.
	VoteResult = reportapi.VoteResult
	// A Notification is one as the list and the streams show it.
	Notification = notificationapi.Notification
	// A NotificationPage is a page of the list. A stream opened at its LastEventID goes
	// on where the page ends.
	NotificationPage = notificationapi.NotificationPage
	// A FeedEvent is what the public feed says of a report.
	FeedEvent = notificationapi.FeedEvent
)

// SignIn returns a client for the user whom the development issuer makes up:
// role is resident, official, operator or auditor, and an empty sub a fresh user.
func (c *Client) SignIn(ctx context.Context, name, role, sub string) (*Client, error) {
	in := map[string]string{"name": name, "role": role}
	if sub != "" {
		in["sub"] = sub
	}
	var out struct {
		AccessToken string `json:"access_token"`
		Sub         string `json:"sub"`
	}
	if err := c.Do(ctx, http.MethodPost, "/dev/token", in, &out); err != nil {
		return nil, err
	}
	return c.As(out.Sub, out.AccessToken), nil
}

// OtherCategory is the name of the category of what fits none of the others, in the
// list that a city begins with.
const OtherCategory = "Other"

// Categories returns the ids of the categories by their English names.
func (c *Client) Categories(ctx context.Context) (map[string]int32, error) {
	var list reportapi.CategoryList
	if err := c.Do(ctx, http.MethodGet, "/categories", nil, &list, "Accept-Language", "en"); err != nil {
		return nil, err
	}
	ids := make(map[string]int32, len(list.Categories))
	for _, category := range list.Categories {
		ids[category.Name] = category.ID
	}
	if ids[OtherCategory] == 0 {
		return nil, errors.New("the stack has no category “Other” in English: its databases are not migrated, or the city has replaced its categories")
	}
	return ids, nil
}

// CreateReport files a report. header may hold an Idempotency-Key.
func (c *Client) CreateReport(ctx context.Context, in NewReport, header ...string) (Report, error) {
	var out Report
	err := c.Do(ctx, http.MethodPost, "/reports", in, &out, header...)
	return out, err
}

// Report returns the report as c's user may see it.
func (c *Client) Report(ctx context.Context, id uuid.UUID) (Report, error) {
	var out Report
	err := c.Do(ctx, http.MethodGet, "/reports/"+id.String(), nil, &out)
	return out, err
}

// SetStatus moves the report to status. header may hold an If-Match.
func (c *Client) SetStatus(ctx context.Context, id uuid.UUID, status, note string, header ...string) (Report, error) {
	in := reportapi.StatusChange{Status: reportapi.Status(status), Note: note}
	var out Report
	err := c.Do(ctx, http.MethodPatch, "/reports/"+id.String()+"/status", in, &out, header...)
	return out, err
}

// Vote casts or changes the user's vote: upvote or downvote.
func (c *Client) Vote(ctx context.Context, id uuid.UUID, voteType string) (VoteResult, error) {
	var out VoteResult
	err := c.Do(ctx, http.MethodPost, "/reports/"+id.String()+"/vote", reportapi.Vote{VoteType: reportapi.VoteType(voteType)}, &out)
	return out, err
}

// Notifications returns a page of the user's notifications, newest first; an
// empty cursor means the first.
func (c *Client) Notifications(ctx context.Context, cursor string, limit int) (NotificationPage, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var out NotificationPage
	err := c.Do(ctx, http.MethodGet, "/notifications?"+query.Encode(), nil, &out)
	return out, err
}

// AddPhoto uploads a photo of a report, and returns its id. The upload's own id is
// made by the caller, and makes a repetition have one effect. Alt says what the
// photo shows.
func (c *Client) AddPhoto(ctx context.Context, report, upload uuid.UUID, alt string, file []byte) (photo uuid.UUID, err error) {
	path := fmt.Sprintf("/reports/%s/photos/%s?alt=%s", report, upload, url.QueryEscape(alt))
	body, err := c.exchange(ctx, http.MethodPut, path, bytes.NewReader(file), "Content-Type", http.DetectContentType(file))
	if err != nil {
		return photo, err
	}
	var accepted struct{ ID uuid.UUID }
	if err := json.Unmarshal(body, &accepted); err != nil {
		return photo, fmt.Errorf("read photo: %w", err)
	}
	return accepted.ID, nil
}

// Picture returns a picture of a photo, by its longest side: 2048, 1024 or 320.
func (c *Client) Picture(ctx context.Context, photo uuid.UUID, size int) ([]byte, error) {
	return c.exchange(ctx, http.MethodGet, fmt.Sprintf("/photos/%s/%d.jpg", photo, size), http.NoBody)
}
