package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
)

// correctAndDispute has the official correct a report, its reporter dispute that it is fixed and
// hide their name from it, and somebody withdraw a report that they have just filed.
func (p *play) correctAndDispute(ctx context.Context) error {
	p.heading("People change their minds.")
	// The mails about a nameless report would be others than those that are waited for.
	for _, report := range p.reports {
		if report.by.name == anonymousName || p.mails != nil && p.mails.person == report.by {
			continue
		}
		if err := p.correct(ctx, report); err != nil {
			return err
		}
		if err := p.dispute(ctx, report); err != nil {
			return err
		}
		if err := p.hideName(ctx, report); err != nil {
			return err
		}
		return p.withdraw(ctx, report)
	}
	return nil
}

// The notifications about a question.
const (
	questionAsked    = "report.question.asked"
	questionAnswered = "report.answered"
)

// askAndAnswer asks a question about an anonymous report as the official, and answers it as
// its reporter. Nobody else reads it, and the official does not learn who it is.
func (p *play) askAndAnswer(ctx context.Context) error {
	for _, report := range p.reports {
		if report.by.name != anonymousName || report.closed {
			continue
		}
		official, path := p.people[officialName], "/reports/"+report.ID.String()
		var seen client.Report
		var dialogue struct {
			Items []struct{ Kind, Text string }
		}
		const answer = "The one at the back"
		for _, act := range []struct {
			by           *person
			method, path string
			in, out      any
		}{
			{official, http.MethodPost, "/questions", map[string]string{"text": "Which of the two doors?"}, nil},
			{report.by, http.MethodPost, "/answers", map[string]string{"text": answer}, nil},
			{official, http.MethodGet, "/dialogue", nil, &dialogue},
			{official, http.MethodGet, "", nil, &seen},
		} {
			if err := act.by.Do(ctx, act.method, path+act.path, act.in, act.out); err != nil {
				return fmt.Errorf("question on an anonymous report: %s %s: %w", act.method, act.path, err)
			}
		}
		if len(dialogue.Items) != 2 || dialogue.Items[1].Text != answer || seen.ReporterName != "" {
			return fmt.Errorf("the official reads %+v of an anonymous report, which must be the answer alone", dialogue)
		}
		if err := p.people[residentNames[0]].Do(ctx, http.MethodGet, path+"/dialogue", nil, nil); err == nil {
			return fmt.Errorf("%s can read the dialogue on the report %s", residentNames[0], report.ID)
		}
		fmt.Fprintf(p.out, "%s asks who filed “%s” something in private, and %s answers: nobody else can read it, and %s stays anonymous.\n",
			officialName, shorten(report.Title, 34), anonymousName, anonymousName)
		return nil
	}
	return nil
}

func (p *play) correct(ctx context.Context, report filed) error {
	return p.act(ctx, officialName, "corrects where “"+shorten(report.Title, 34)+"” is", report.by, "", func() (uuid.UUID, int64, error) {
		var corrected client.Report
		body := map[string]string{"address": "Across the street", "reason": "It is on the other side"}
		err := p.people[officialName].Do(ctx, http.MethodPatch, "/reports/"+report.ID.String(), body, &corrected)
		return report.ID, corrected.Version, err
	})
}

// dispute has the official resolve a report, unless it is, its reporter say that it is not
// fixed, and the official keep it resolved.
func (p *play) dispute(ctx context.Context, report filed) error {
	official, title := p.people[officialName], "“"+shorten(report.Title, 30)+"”"
	now, err := official.Report(ctx, report.ID)
	if err != nil {
		return fmt.Errorf("read a report: %w", err)
	}
	path := "/reports/" + report.ID.String()
	version := func(err error) (uuid.UUID, int64, error) {
		if err != nil {
			return uuid.Nil, 0, err
		}
		changed, err := official.Report(ctx, report.ID)
		return report.ID, changed.Version, err
	}
	if now.Status != "resolved" {
		err := p.act(ctx, officialName, "resolves "+title, report.by, "", func() (uuid.UUID, int64, error) {
			changed, err := official.SetStatus(ctx, report.ID, "resolved", "Done")
			return report.ID, changed.Version, err
		})
		if err != nil {
			return err
		}
	}
	err = p.act(ctx, report.by.name, "says that "+title+" is not fixed", official, "", func() (uuid.UUID, int64, error) {
		body := map[string]any{"fixed": false, "text": "It is as it was"}
		return version(report.by.Do(ctx, http.MethodPut, path+"/verdict", body, nil))
	})
	if err != nil {
		return err
	}
	return p.act(ctx, officialName, "keeps "+title+" resolved", report.by, "", func() (uuid.UUID, int64, error) {
		body := map[string]string{"note": "It was fixed at our second visit"}
		return version(official.Do(ctx, http.MethodPost, path+"/verdict/decision", body, nil))
	})
}

func (p *play) hideName(ctx context.Context, report filed) error {
	err := p.act(ctx, report.by.name, "hides the name on “"+shorten(report.Title, 34)+"”", report.by, "", func() (uuid.UUID, int64, error) {
		var nameless client.Report
		body := map[string]string{"privacy_level": "anonymous"}
		err := report.by.Do(ctx, http.MethodPut, "/reports/"+report.ID.String()+"/privacy", body, &nameless)
		return report.ID, nameless.Version, err
	})
	if err != nil {
		return err
	}
	seen, err := p.people[officialName].Report(ctx, report.ID)
	if err != nil {
		return fmt.Errorf("read a report without a name: %w", err)
	}
	if seen.ReporterName != "" {
		return fmt.Errorf("%s can see who hid their name on the report %s", officialName, report.ID)
	}
	return nil
}

// withdraw files another report like the given one and takes it back. The audit does not
// count it: nobody has to be notified of what is no longer there.
func (p *play) withdraw(ctx context.Context, like filed) error {
	var report client.Report
	body := map[string]any{"title": "Filed by mistake", "description": "", "category_id": like.CategoryID, "privacy_level": "public"}
	if err := like.by.Do(ctx, http.MethodPost, "/reports", body, &report, "Idempotency-Key", uuid.NewString()); err != nil {
		return fmt.Errorf("file a report: %w", err)
	}
	path := "/reports/" + report.ID.String()
	if err := like.by.Do(ctx, http.MethodDelete, path, nil, &report); err != nil {
		return fmt.Errorf("withdraw a report: %w", err)
	}
	for _, name := range residentNames {
		if _, err := p.people[name].Report(ctx, report.ID); err == nil && p.people[name] != like.by {
			return fmt.Errorf("%s can see the withdrawn report %s", name, report.ID)
		}
	}
	fmt.Fprintf(p.out, "%s files a report by mistake and withdraws it: no other resident can see it.\n", like.by.name)
	return nil
}
