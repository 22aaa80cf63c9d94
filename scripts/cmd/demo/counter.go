package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// takeCall has the official file for somebody who calls. The caller confirms an address,
// if the stack has a mailbox, and nobody but the official sees that there was a call.
func (p *play) takeCall(ctx context.Context, gateway *client.Client, category int32) error {
	official := p.people[officialName]
	var report client.Report
	body := map[string]any{"title": "Water runs over the road", "description": "", "category_id": category, "privacy_level": "anonymous", "source": "telephone"}
	if err := official.Do(ctx, http.MethodPost, "/reports", body, &report, "Idempotency-Key", uuid.NewString()); err != nil {
		return fmt.Errorf("file for a caller: %w", err)
	}
	for _, name := range residentNames {
		var seen struct{ Source, Intake any }
		if err := p.people[name].Do(ctx, http.MethodGet, "/reports/"+report.ID.String(), nil, &seen); err != nil || seen.Source != nil || seen.Intake != nil {
			return fmt.Errorf("%s can see how the report %s came (error: %w)", name, report.ID, err)
		}
	}
	fmt.Fprintf(p.out, "\n%s files a report for a caller: for all others it is an anonymous one.\n", officialName)
	if p.mails == nil {
		return nil
	}
	var work struct{ Intake struct{ Caller string } }
	if err := official.Do(ctx, http.MethodGet, "/reports/"+report.ID.String()+"/work", nil, &work); err != nil {
		return fmt.Errorf("read the work on a report: %w", err)
	}
	address := uuid.NewString() + "@example.org"
	caller := map[string]any{"report_id": report.ID, "caller": work.Intake.Caller, "address": address, "language": "en", "zone": "Etc/UTC"}
	if err := official.Do(ctx, http.MethodPut, "/callers", caller, nil); err != nil {
		return fmt.Errorf("enter the address of a caller: %w", err)
	}
	if err := p.confirmAddress(ctx, gateway, address); err != nil {
		return err
	}
	fmt.Fprintln(p.out, "The caller gets a link by mail, and with its button mails about the report.")
	return nil
}

var proofPattern = regexp.MustCompile(`/p/[\w-]{22}`)

// confirmAddress presses the button behind the link that was mailed to address.
func (p *play) confirmAddress(ctx context.Context, gateway *client.Client, address string) error {
	var link string
	err := wait.Until(ctx, patience, "a link in the mailbox at "+p.mails.mailbox, func(ctx context.Context) (bool, error) {
		mails, err := p.mails.list(ctx)
		for _, m := range mails {
			if m.To == address {
				link = proofPattern.FindString(m.Text)
			}
		}
		return link != "", err
	})
	if err != nil {
		return err
	}
	if err := gateway.Do(ctx, http.MethodPost, link, nil, nil); err != nil {
		return fmt.Errorf("confirm an address: %w", err)
	}
	return nil
}
