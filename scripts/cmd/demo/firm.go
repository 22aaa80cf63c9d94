package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// jobPattern is a link in a mail to a firm, whose end is what the firm's page sends.
var jobPattern = regexp.MustCompile(`/j/(ccj_[A-Z2-7]{26})`)

// sendToFirm has the official of a department forward a report to a firm, and the firm say by the
// link in its mail that it is done. Without a mailbox nobody would read the link. The audit
// does not count it, as no screen shows it.
func (p *play) sendToFirm(ctx context.Context, gateway, official *client.Client, department int32) error {
	open := slices.IndexFunc(p.reports, func(r filed) bool { return !r.closed })
	if p.mails == nil || open < 0 {
		return nil
	}
	address, path := uuid.NewString()+"@example.org", "/reports/"+p.reports[open].ID.String()
	forward := map[string]any{"department_id": department, "reason": "They know the firm"}
	if err := p.people[officialName].Do(ctx, http.MethodPost, path+"/forward", forward, nil); err != nil {
		return fmt.Errorf("forward a report: %w", err)
	}
	list := fmt.Sprintf("/reports/firms?department_id=%d", department)
	var firms struct{ Firms []struct{ ID uuid.UUID } }
	firm := map[string]any{"firms": []map[string]string{{"name": "Lampu Jaya", "address": address}}}
	if err := official.Do(ctx, http.MethodPut, list, firm, &firms); err != nil {
		return fmt.Errorf("set the firms of a department: %w", err)
	}
	if err := official.Do(ctx, http.MethodPost, path+"/firm", map[string]any{"firm_id": firms.Firms[0].ID, "text": "The left one of two."}, nil); err != nil {
		return fmt.Errorf("forward a report to a firm: %w", err)
	}
	var link []string
	err := wait.Until(ctx, patience, "a firm's link in the mailbox at "+p.mails.mailbox, func(ctx context.Context) (bool, error) {
		mails, err := p.mails.list(ctx)
		for _, m := range mails {
			if m.To == address {
				link = jobPattern.FindStringSubmatch(m.Text)
			}
		}
		return link != nil, err
	})
	if err != nil {
		return err
	}
	if err := gateway.As("", link[1]).Do(ctx, http.MethodPost, "/reports/job", map[string]string{"said": "done", "text": "New lamp"}, nil); err != nil {
		return fmt.Errorf("say that a repair is done: %w", err)
	}
	var work struct{ Job struct{ Said string } }
	if err := official.Do(ctx, http.MethodGet, path+"/work", nil, &work); err != nil || work.Job.Said != "done" {
		return fmt.Errorf("the official reads that the firm says %q (error: %w)", work.Job.Said, err)
	}
	fmt.Fprintf(p.out, "%s forwards a report to a firm, which says by the link in its mail, and without an account, that it is done.\n", desks[1].official)
	return nil
}
