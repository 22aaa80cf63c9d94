package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// The city's categories, as an operator edits them.
type (
	categoryList struct {
		Categories []category `json:"categories"`
	}
	category struct {
		ID      int32          `json:"id"`
		Icon    string         `json:"icon"`
		Accepts bool           `json:"accepts_reports"`
		Texts   []categoryText `json:"texts"`
		Posts   []any          `json:"signposts,omitempty"`
		Retired bool           `json:"retired,omitempty"` // never sent
	}
	categoryText struct {
		Language string `json:"language"`
		Name     string `json:"name"`
		Hint     string `json:"hint"`
		Group    string `json:"group"`
	}
)

// renamed returns the categories in use, of which one has a mark behind its names.
func (l categoryList) renamed(id int32, mark string) categoryList {
	var out categoryList
	for _, c := range l.Categories {
		if c.Retired {
			continue
		}
		c.Texts = append([]categoryText(nil), c.Texts...)
		for i := range c.Texts {
			if c.ID == id {
				c.Texts[i].Name += mark
			}
		}
		out.Categories = append(out.Categories, c)
	}
	return out
}

// star marks a category's new name.
const star = " ★"

// starred reports whether the category is listed under its new name, in whatever
// language.
func starred(ids map[string]int32, category int32) bool {
	for name, id := range ids {
		if id == category && strings.HasSuffix(name, star) {
			return true
		}
	}
	return false
}

// listTime is within which every replica has a new list.
const listTime = 2 * time.Second

// rename has an operator give the category of the first report another name for a
// moment: every list has it, and what was notified before keeps the old one.
func (p *play) rename(ctx context.Context, gateway *client.Client) (err error) {
	p.heading("An operator renames a category; lists follow, and old notifications stay as they were.")
	operator, err := gateway.SignIn(ctx, "Pavel", "operator", "")
	if err != nil {
		return signInError(err)
	}
	const path = "/reports/categories"
	var before categoryList
	if err := operator.Do(ctx, http.MethodGet, path, nil, &before); err != nil {
		return fmt.Errorf("read categories: %w", err)
	}
	replace := func(ctx context.Context, list categoryList) error {
		if err := operator.Do(ctx, http.MethodPut, path, list, nil, "If-Match", "*"); err != nil {
			return fmt.Errorf("replace categories: %w", err)
		}
		return nil
	}
	report := p.reports[0]
	name := report.CategoryName + star
	if err := replace(ctx, before.renamed(report.CategoryID, star)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, replace(context.WithoutCancel(ctx), before.renamed(0, ""))) }()
	changed := time.Now()
	for {
		ids, err := gateway.Categories(ctx)
		if err != nil {
			return err
		}
		if starred(ids, report.CategoryID) {
			break
		}
		if time.Since(changed) > listTime {
			return fmt.Errorf("the list still has no “%s” after %s", name, listTime)
		}
		if err := wait.For(ctx, pollEvery); err != nil {
			return err
		}
	}
	seen, err := p.people[officialName].Report(ctx, report.ID)
	if err != nil {
		return fmt.Errorf("read a report: %w", err)
	}
	if seen.CategoryName != name {
		return fmt.Errorf("the report's category is still “%s”, not “%s”", seen.CategoryName, name)
	}
	old, err := p.notifiedOf(ctx, report)
	if err != nil {
		return err
	}
	if old != report.CategoryName {
		return fmt.Errorf("the official was notified of “%s”, and reads “%s” now", report.CategoryName, old)
	}
	fmt.Fprintf(p.out, "“%s” is “%s” in every list; the official's notification still says “%s”.\n", report.CategoryName, name, old)
	return nil
}

// notifiedOf returns the name of the category in the official's notification of a new
// report.
func (p *play) notifiedOf(ctx context.Context, report filed) (string, error) {
	for cursor := ""; ; {
		page, err := p.people[officialName].Notifications(ctx, cursor, 100)
		if err != nil {
			return "", fmt.Errorf("read notifications: %w", err)
		}
		for _, n := range page.Notifications {
			if n.ReportID == report.ID && n.CategoryName != "" {
				return n.CategoryName, nil
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return "", fmt.Errorf("the official has no notification of the report %s", report.ID)
		}
	}
}
