package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
)

// A department of the city.
type department struct {
	ID         int32   `json:"id"`
	Code       string  `json:"code"`
	Name       string  `json:"name"`
	Categories []int32 `json:"category_ids"`
	Routes     []any   `json:"routes"`
}

// The two departments that the city has for as long as the demo runs, each with an official.
var desks = []struct{ code, official string }{{demoDesk + "lights", "Lina"}, {demoDesk + "roads", "Rafi"}}

// demoDesk begins the codes of both.
const demoDesk = "demo-"

// keepApart has the anonymous resident file a report that only the city sees, and the official
// give it to one of two departments: for the other one's official it is not there. The audit
// does not count it, as no screen of its own shows it.
func (p *play) keepApart(ctx context.Context, gateway *client.Client) (err error) {
	p.heading("Two departments: what only the city sees is not there for the other one; a firm repairs for them.")
	officials := make([]*client.Client, len(desks))
	for i, d := range desks {
		if officials[i], err = enterDesk(ctx, gateway, d.official, d.code); err != nil {
			return err
		}
	}
	var own struct{ Scope string }
	if err := officials[0].Do(ctx, http.MethodGet, "/reports/me", nil, &own); err != nil {
		return fmt.Errorf("read an official's scope: %w", err)
	}
	operator, err := gateway.SignIn(ctx, "Pavel", "operator", "")
	if err != nil {
		return signInError(err)
	}
	const path = "/reports/departments"
	type list struct {
		Departments []department `json:"departments"`
	}
	var before list
	if err := operator.Do(ctx, http.MethodGet, path, nil, &before); err != nil {
		return fmt.Errorf("read departments: %w", err)
	}
	// A demo that was interrupted has left its own.
	before.Departments = slices.DeleteFunc(before.Departments, func(each department) bool { return strings.HasPrefix(each.Code, demoDesk) })
	all, next := slices.Clone(before.Departments), int32(1)
	for _, each := range all {
		next = max(next, each.ID+1)
	}
	for i, d := range desks {
		all = append(all, department{ID: next + int32(i), Code: d.code, Name: d.code, Categories: []int32{}, Routes: []any{}})
	}
	replace := func(ctx context.Context, departments []department) error {
		if err := operator.Do(ctx, http.MethodPut, path, list{departments}, nil); err != nil {
			return fmt.Errorf("replace departments: %w", err)
		}
		return nil
	}
	if err := replace(ctx, all); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, replace(context.WithoutCancel(ctx), before.Departments))
	}()
	if err := p.sendToFirm(ctx, gateway, officials[1], next+1); err != nil {
		return err
	}
	if own.Scope != "department" {
		fmt.Fprintln(p.out, "Officials work for the whole city here: with DESK_SCOPE=department the demo shows it.")
		return nil
	}
	return p.lookAcross(ctx, officials[0], officials[1], next+1)
}

// enterDesk signs an official of a department in.
func enterDesk(ctx context.Context, gateway *client.Client, name, code string) (*client.Client, error) {
	var token struct {
		Sub         string `json:"sub"`
		AccessToken string `json:"access_token"`
	}
	body := map[string]any{"name": name, "role": "official", "departments": []string{code}}
	if err := gateway.Do(ctx, http.MethodPost, "/dev/token", body, &token); err != nil {
		return nil, signInError(err)
	}
	return gateway.As(token.Sub, token.AccessToken), nil
}

// lookAcross has a report filed for the city alone and forwarded to a department, and its
// official and another one look for it. At the end its reporter withdraws it.
func (p *play) lookAcross(ctx context.Context, other, own *client.Client, to int32) error {
	reporter := p.people[anonymousName]
	var report client.Report
	in := map[string]any{
		"title": "A landlord threatens us", "description": "", "category_id": p.reports[0].CategoryID,
		"privacy_level": "anonymous", "visibility": "officials",
	}
	if err := reporter.Do(ctx, http.MethodPost, "/reports", in, &report, "Idempotency-Key", uuid.NewString()); err != nil {
		return fmt.Errorf("file a private report: %w", err)
	}
	path := "/reports/" + report.ID.String()
	forward := map[string]any{"department_id": to, "reason": "They know the house"}
	if err := p.people[officialName].Do(ctx, http.MethodPost, path+"/forward", forward, nil); err != nil {
		return fmt.Errorf("forward a report: %w", err)
	}
	found := func(official *client.Client) (answers int, err error) {
		for _, each := range []string{path, path + "/work", path + "/dialogue"} {
			err := official.Do(ctx, http.MethodGet, each, nil, nil)
			if err == nil {
				answers++
			} else if client.StatusOf(err) != http.StatusNotFound {
				return 0, fmt.Errorf("look for a private report: %w", err)
			}
		}
		var queue struct{ Reports []struct{ ID uuid.UUID } }
		if err := official.Do(ctx, http.MethodGet, "/reports/queue?q="+report.ID.String(), nil, &queue); err != nil {
			return 0, fmt.Errorf("search the queue: %w", err)
		}
		return answers + len(queue.Reports), nil
	}
	theirs, err := found(own)
	others, failed := found(other)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if theirs != 4 || others != 0 {
		return fmt.Errorf("of 4 ways to the private report %s its department's official has %d and another one's %d", report.ID, theirs, others)
	}
	fmt.Fprintf(p.out, "%s of %s works on it; for %s of %s there is no such report, by its address, its dialogue or the queue.\n",
		desks[1].official, desks[1].code, desks[0].official, desks[0].code)
	if err := reporter.Do(ctx, http.MethodDelete, path, nil, nil); err != nil {
		return fmt.Errorf("withdraw a report: %w", err)
	}
	return nil
}
