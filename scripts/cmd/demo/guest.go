package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// look is how often the demo looks whether something is there that no stream tells.
const look = 20 * time.Millisecond

// A city's lift, for as long as the demo runs.
const (
	liftLayer = "demo-lifts"
	aLift     = `{"type": "Feature", "properties": {"code": "station", "name": "Lift at the station"}, "geometry": {"type": "Point", "coordinates": [106.8, -6.595]}}`
)

// setLifts replaces the city's lifts by some features, as an operator does.
func setLifts(ctx context.Context, operator *client.Client, category int32, features string) error {
	file := json.RawMessage(`{"type": "FeatureCollection", "features": [` + features + `]}`)
	path := fmt.Sprintf("/reports/assets/%s?category=%d", liftLayer, category)
	if err := operator.Do(ctx, http.MethodPut, path, file, nil, "Content-Type", "application/geo+json"); err != nil {
		return fmt.Errorf("upload lifts: %w", err)
	}
	return nil
}

// visit has somebody without an account report something, and the official answer: in a
// city that takes such reports. The code at the lift has the address of the form.
func (p *play) visit(ctx context.Context, gateway *client.Client, address string, ids map[string]int32) (err error) {
	p.heading("Somebody without an account scans the code at a broken lift.")
	guest, err := enterAsGuest(ctx, gateway, address)
	if problem, ok := errors.AsType[*client.Error](err); ok && takesNoGuests(problem) {
		fmt.Fprintf(p.out, "This city takes no reports without an account now: %s.\n", problem.Detail)
		return nil
	}
	if err != nil {
		return err
	}
	operator, err := gateway.SignIn(ctx, "Pavel", "operator", "")
	if err != nil {
		return signInError(err)
	}
	if err := setLifts(ctx, operator, ids["Other"], aLift); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, setLifts(context.WithoutCancel(ctx), operator, ids["Other"], "")) }()
	const lift = liftLayer + "/station"
	fmt.Fprintf(p.out, "The code is %s/new?asset=%s.\n", strings.TrimSuffix(address, "/"), lift)
	var scanned struct {
		Assets []struct {
			Name     string `json:"name"`
			Category int32  `json:"category_id"`
		} `json:"assets"`
	}
	if err := guest.Do(ctx, http.MethodGet, "/map/assets?asset="+lift, nil, &scanned); err != nil || len(scanned.Assets) != 1 {
		return fmt.Errorf("look up a lift: %w", errors.Join(err, fmt.Errorf("%d found", len(scanned.Assets))))
	}
	in := client.NewReport{Title: scanned.Assets[0].Name + ": broken", CategoryID: scanned.Assets[0].Category, Asset: lift, PrivacyLevel: "anonymous"}
	var report client.Report
	err = p.act(ctx, "—", "reports “"+in.Title+"”", p.people[officialName], "", func() (_ uuid.UUID, _ int64, err error) {
		report, err = guest.CreateReport(ctx, in, "Idempotency-Key", uuid.NewString())
		return report.ID, report.Version, err
	})
	if err != nil {
		return err
	}
	const note = "The mechanic comes at noon"
	start := time.Now()
	changed, err := p.people[officialName].SetStatus(ctx, report.ID, "in_progress", note)
	if err != nil {
		return fmt.Errorf("move a guest's report: %w", err)
	}
	// No screen of the cast shows it: it is the guest's.
	p.audit.Accept(city.Event{Report: report.ID, Version: changed.Version, Screens: 1 << receiverScreen, Planned: start})
	waiting, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	for {
		page, err := guest.Notifications(waiting, "", 1)
		if err != nil {
			return fmt.Errorf("read a guest's notifications: %w", err)
		}
		if len(page.Notifications) == 1 {
			fmt.Fprintf(p.out, "The guest, whom nobody knows, reads: “%s”.\n", note)
			return nil
		}
		if err := wait.For(waiting, look); err != nil {
			return errors.New("the guest was not notified")
		}
	}
}

// takesNoGuests reports whether the city refuses guests. Any other refusal of the stack is a fault.
func takesNoGuests(problem *client.Error) bool {
	return problem.Name() == "no-guests" || problem.Name() == "guests-closed"
}

// enterAsGuest returns the client of a new guest. Its error is a *client.Error where the stack
// refuses one.
func enterAsGuest(ctx context.Context, gateway *client.Client, address string) (*client.Client, error) {
	guests, err := url.JoinPath(address, "guests") // the address may end with a slash
	if err != nil {
		return nil, fmt.Errorf("become a guest: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, guests, nil)
	if err != nil {
		return nil, fmt.Errorf("become a guest: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("become a guest: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		problem := &client.Error{Status: res.StatusCode}
		if err := json.NewDecoder(res.Body).Decode(problem); err != nil {
			return nil, fmt.Errorf("become a guest: status %d: %w", res.StatusCode, err)
		}
		return nil, problem
	}
	var session auth.Session
	if err := json.NewDecoder(res.Body).Decode(&session); err != nil {
		return nil, fmt.Errorf("become a guest: %w", err)
	}
	for _, c := range res.Cookies() { // a browser would send it back
		return gateway.As(session.Sub, c.Value), nil
	}
	return nil, errors.New("become a guest: no cookie")
}

// show has the official show a photo, in a city that holds those of residents until then.
func (p *play) show(ctx context.Context, report, photo uuid.UUID) error {
	path := "/reports/" + report.String() + "/photos"
	waiting, cancel := context.WithTimeout(ctx, photoPatience)
	defer cancel()
	for {
		var list struct {
			Photos []struct {
				ID    uuid.UUID `json:"id"`
				State string    `json:"state"`
			} `json:"photos"`
		}
		official := p.people[officialName]
		if err := official.Do(waiting, http.MethodGet, path, nil, &list); err != nil {
			return fmt.Errorf("look at photos: %w", err)
		}
		for _, f := range list.Photos {
			switch {
			case f.ID == photo && f.State == "held":
				if err := official.Do(waiting, http.MethodPost, path+"/"+photo.String()+"/show", nil, nil); err != nil {
					return fmt.Errorf("show a photo: %w", err)
				}
				return nil
			case f.ID == photo && f.State != "checking":
				return nil
			}
		}
		if err := wait.For(waiting, look); err != nil {
			return fmt.Errorf("wait for a photo: %w", err)
		}
	}
}
