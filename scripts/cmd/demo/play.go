package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

// patience is how long a notification may take before the play goes on
// without it; the audit at the end waits for it once more. After one that did
// not come, the play waits no longer than shortPatience for the others.
const patience, shortPatience = 15 * time.Second, time.Second

// A play is what happens in the city, told line by line.
type play struct {
	*cast
	audit   *audit
	mails   *mailReader // nil without a mailbox
	out     io.Writer
	began   time.Time
	wait    time.Duration // for the next notification
	reports []filed
	photos  []uuid.UUID         // that everybody may see
	mailed  map[uuid.UUID]int64 // reports by the version that the latest mail is about
}

// A filed report and who filed it.
type filed struct {
	client.Report
	by     *person
	closed bool // in the sample
}

// act does what the line says and waits until the screen of to shows it. do returns
// the report and its version after the change. mail is the new status that a mail
// is about, if there has to be one.
func (p *play) act(ctx context.Context, who, what string, to *person, mail string, do func() (uuid.UUID, int64, error)) error {
	start := time.Now()
	id, version, err := do()
	if err != nil {
		return fmt.Errorf("%s %s: %w", who, what, err)
	}
	screens := uint64(1<<to.screen | 1<<receiverScreen)
	if mail != "" && p.mails != nil && p.mails.person == to {
		p.mails.expect(id, version, mail)
		p.mailed[id] = version
		screens |= 1 << mailboxScreen
	}
	p.audit.Accept(city.Event{Report: id, Version: version, Screens: screens, Planned: start})
	waiting, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	shown := "not yet"
	if p.audit.Await(id, version, to.screen, waiting.Done()) {
		shown = millis(time.Since(start)) + " ms"
	} else {
		p.wait = shortPatience
	}
	fmt.Fprintf(p.out, "%6.2f s  %-4s  %-58s  → %-4s  %9s\n", time.Since(p.began).Seconds(), who, what, to.name, shown)
	return ctx.Err()
}

// file has the residents report the sample, in turn.
func (p *play) file(ctx context.Context, sample []request, ids map[string]int32) error {
	p.heading("Residents report what is wrong; the official sees it come in.")
	for i, r := range sample {
		by := p.people[residentNames[i%len(residentNames)]]
		in := r.report(ids, by.privacy)
		err := p.act(ctx, by.name, "reports “"+in.Title+"”", p.people[officialName], "", func() (uuid.UUID, int64, error) {
			report, err := by.CreateReport(ctx, in, "Idempotency-Key", uuid.NewString())
			p.reports = append(p.reports, filed{report, by, r.Status == "closed"})
			return report.ID, report.Version, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// vote has everybody vote on some of what the others reported.
func (p *play) vote(ctx context.Context) error {
	p.heading("They vote on each other's reports; whoever reported sees it.")
	for i, report := range p.reports {
		voter := p.people[residentNames[(i+1)%len(residentNames)]]
		if err := p.castVote(ctx, voter, report, "upvote"); err != nil {
			return err
		}
		if i%5 != 0 {
			continue
		}
		if err := p.castVote(ctx, voter, report, "downvote"); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) castVote(ctx context.Context, voter *person, report filed, vote string) error {
	verb := map[string]string{"upvote": "supports", "downvote": "now opposes"}[vote]
	return p.act(ctx, voter.name, verb+" “"+shorten(report.Title, 36)+"”", report.by, "",
		func() (uuid.UUID, int64, error) {
			result, err := voter.Vote(ctx, report.ID, vote)
			return report.ID, result.Version, err
		})
}

// A move is a change of status with what the official writes to it.
type move struct{ status, note string }

// work has the official move every report: what the sample calls closed is
// resolved, some others are rejected and reopened.
func (p *play) work(ctx context.Context) error {
	p.heading("The official works through them; whoever reported sees it.")
	for i, report := range p.reports {
		moves := []move{{"in_progress", ""}}
		switch {
		case report.closed:
			moves = append(moves, move{"resolved", "Collected this morning"})
		case i%6 == 3:
			moves = []move{{"rejected", "Not the city's ground"}, {"pending", "The survey says it is"}}
		}
		for _, m := range moves {
			if err := p.move(ctx, report, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *play) move(ctx context.Context, report filed, m move) error {
	// A status that is overtaken before its mail is written gets none: the mail goes first.
	if version := p.mailed[report.ID]; version > 0 {
		waiting, cancel := context.WithTimeout(ctx, p.wait)
		p.audit.Await(report.ID, version, mailboxScreen, waiting.Done())
		cancel()
	}
	what := fmt.Sprintf("moves “%s” to %s", shorten(report.Title, 34), m.status)
	return p.act(ctx, officialName, what, report.by, m.status, func() (uuid.UUID, int64, error) {
		changed, err := p.people[officialName].SetStatus(ctx, report.ID, m.status, m.note)
		return report.ID, changed.Version, err
	})
}

// checkAnonymity looks at an anonymous report through other eyes.
func (p *play) checkAnonymity(ctx context.Context) error {
	for _, report := range p.reports {
		if report.by.name != anonymousName {
			continue
		}
		for _, name := range []string{officialName, residentNames[0]} {
			seen, err := p.people[name].Report(ctx, report.ID)
			if err != nil {
				return fmt.Errorf("read an anonymous report: %w", err)
			}
			if seen.ReporterName != "" || seen.Mine {
				return fmt.Errorf("%s can see who filed the anonymous report %s", name, report.ID)
			}
		}
	}
	fmt.Fprintf(p.out, "\n%s filed anonymously: none of the others can see who it was.\n", anonymousName)
	return nil
}

func (p *play) heading(text string) { fmt.Fprintf(p.out, "\n%s\n", text) }
