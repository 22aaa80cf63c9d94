// Command demo walks the main job of a running stack: residents report and
// vote, an official works, and everybody's notifications arrive live. It
// holds the streams open like browsers do and counts what arrived.
//
// Another system of the city gets every change by a webhook, and counts as
// one more screen. So does a mailbox, if the stack has one: a resident asks for mails
// about new statuses. With -digest the demo also waits for the resident's digest,
// which is due at a full minute.
//
// An operator renames a category for a moment, which every list shows and no old
// notification does.
//
// In a city whose officials work for departments, a private report of one department is not
// there for another one's official. If the stack has a mailbox, a report goes to a firm, which
// says by the link in its mail that it is done.
//
// Some reports get photos that have a place in them, which must not be in what
// everybody is served.
//
// It ends with 0 only if every notification came exactly once.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/command"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// settle is how long the screens stay open after the last notification, so
// that one which comes twice is seen.
const settle = time.Second

// errPromise says that notifications were lost or doubled; the account has
// the figures.
var errPromise = errors.New("not every notification arrived exactly once")

func main() {
	command.Main(func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Getenv, os.Stdout) })
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	gateway := flags.String("gateway", cmp.Or(getenv("GATEWAY_URL"), "http://127.0.0.1:8080"), "address of the stack; or set GATEWAY_URL")
	address := flags.String("receiver", cmp.Or(getenv("DEMO_RECEIVER"), "127.0.0.1"), "address of this machine at which webhooks reach it; or set DEMO_RECEIVER")
	mailbox := flags.String("mailbox", getenv("MAILBOX_URL"), "address of the stack's mailbox, none for no mails; or set MAILBOX_URL")
	digest := flags.Bool("digest", false, "wait for a digest as well, which takes up to a minute")
	patient := flags.Duration("wait", 20*time.Second, "how long to wait for the stack")
	if err := flags.Parse(args); err != nil {
		return err
	}
	sample, err := loadSample()
	if err != nil {
		return err
	}
	stack := client.New(*gateway)
	ids, err := await(ctx, stack, *gateway, *patient, out)
	if err != nil {
		return err
	}
	a := newAudit()
	other, err := receive(ctx, stack, *address, a)
	if err != nil {
		return err
	}
	everyone, err := enter(ctx, stack, a)
	if err != nil {
		return errors.Join(err, everyone.screens.Close(), other.close())
	}
	p := &play{cast: everyone, audit: a, out: out, began: time.Now(), wait: patience, mailed: make(map[uuid.UUID]int64)}
	fmt.Fprintf(out, "%s, %s and %s (anonymous) are signed in, and the official %s. Each watches a live stream.\n",
		residentNames[0], residentNames[1], anonymousName, officialName)
	fmt.Fprintln(out, "Another system of the city gets every change by a signed webhook.")
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	read := make(chan error, 1)
	if *mailbox == "" {
		read <- nil
	} else {
		if p.mails, err = wantMails(ctx, everyone.people[residentNames[0]], *mailbox, *digest, a); err != nil {
			return errors.Join(err, everyone.screens.Close(), other.close())
		}
		go func() { read <- p.mails.watch(reading) }()
		fmt.Fprintf(out, "%s gets a mail about each new status: see %s\n", residentNames[0], *mailbox)
	}
	err = p.perform(ctx, stack, *gateway, sample, ids)
	stopReading()
	return p.finish(errors.Join(err, <-read, everyone.screens.Close(), other.close(), other.tell(out)), *gateway)
}

// perform does everything, then waits for what is late.
func (p *play) perform(ctx context.Context, gateway *client.Client, address string, sample []request, ids map[string]int32) error {
	if err := p.file(ctx, sample, ids); err != nil {
		return err
	}
	if err := p.addPhotos(ctx); err != nil {
		return err
	}
	if err := p.vote(ctx); err != nil {
		return err
	}
	if p.mails != nil && p.mails.digest {
		if err := p.mails.wantDigest(ctx); err != nil {
			return err
		}
	}
	if err := p.work(ctx); err != nil {
		return err
	}
	if p.mails != nil && p.mails.digest {
		fmt.Fprintln(p.out, "\nThe digest is due at the next full minute.")
		p.mails.awaitDigest(ctx)
	}
	if err := p.askAndAnswer(ctx); err != nil {
		return err
	}
	if err := p.takeCall(ctx, gateway, p.reports[0].CategoryID); err != nil {
		return err
	}
	if err := p.correctAndDispute(ctx); err != nil {
		return err
	}
	if err := p.visit(ctx, gateway, address, ids); err != nil {
		return err
	}
	if err := p.keepApart(ctx, gateway); err != nil {
		return err
	}
	late, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p.audit.Settle(late.Done())
	if err := p.checkAnonymity(ctx); err != nil {
		return err
	}
	if err := p.checkPhotos(ctx); err != nil {
		return err
	}
	if err := p.rename(ctx, gateway); err != nil {
		return err
	}
	return wait.For(ctx, settle)
}

// finish prints the sum, and last of all the line that other programs read.
func (p *play) finish(err error, gateway string) error {
	r := p.audit.result()
	streams := p.screens.Count()
	fmt.Fprintf(p.out, "\n%d notifications and events expected: %d came exactly once, %d were lost, %d came twice.\n",
		r.Expected, r.Once, r.Lost, r.Doubled)
	fmt.Fprintf(p.out, "From request to screen: %s ms for half of them, %s ms for 99 in 100. From request to the other system: %s ms for half of them.\n",
		millis(r.p50), millis(r.p99), millis(r.webhookP50))
	if r.photoMax > 0 {
		fmt.Fprintf(p.out, "From upload to the picture on the screen: %s ms at most.\n", millis(r.photoMax))
	}
	if r.mails > 0 {
		fmt.Fprintf(p.out, "Mails that came once: %d, of them digests: %d.\n", r.mails, r.digests)
	}
	if streams.Missing+streams.Doubled+streams.OutOfOrder > 0 {
		fmt.Fprintf(p.out, "The streams' own numbers disagree: %d left out, %d repeated, %d out of order.\n",
			streams.Missing, streams.Doubled, streams.OutOfOrder)
		err = errors.Join(err, errPromise)
	}
	fmt.Fprintf(p.out, "The stack stays up: open %s in a browser, or stop it with `make down`.\n", gateway)
	fmt.Fprintln(p.out, r)
	if err == nil && !r.good() {
		err = errPromise
	}
	return err
}
