// Command screenshots takes a picture of every screen of a running stack, in a
// small town that it founds there.
//
//	go run ./scripts/cmd/screenshots "$(scripts/stack address)"
//
// The town has more neighbours than one address may speak for: start the stack
// with GATEWAY_LIMITS=off.
//
// Dead letters are something that a healthy stack does not have: with
// RABBITMQ_URL, as the services have it, some are made. The console's charts
// are drawn for most of a minute while the town is busy. With -mails it takes
// pictures of the mails alone, which needs no stack.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
	"github.com/cityconnect/cityconnect/scripts/internal/command"
)

func main() {
	command.Main(func(ctx context.Context) error { return run(ctx, os.Args[1:]) })
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("screenshots", flag.ContinueOnError)
	out := flags.String("out", "docs/screenshots", "folder for the pictures")
	mails := flags.Bool("mails", false, "take pictures of mails alone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 && !*mails {
		return fmt.Errorf("must have the address of a running stack, such as http://127.0.0.1:8080")
	}
	base := flags.Arg(0)
	b, end, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer end()
	photographer := photographer{b, base, *out}
	if err := photographer.shootMails(ctx); err != nil || *mails {
		return err
	}
	town, err := found(ctx, client.New(base))
	if err != nil {
		return fmt.Errorf("found the town: %w", err)
	}
	if broker := os.Getenv("RABBITMQ_URL"); broker != "" {
		if err := town.breakMessages(ctx, broker); err != nil {
			return fmt.Errorf("make dead letters: %w", err)
		}
	}
	if err := photographer.shoot(scenes(town)); err != nil {
		return err
	}
	return town.whileBusy(ctx, func() error { return photographer.shootTogether(busyScenes(town)) })
}

// A photographer takes pictures of the page at base.
type photographer struct {
	*browser.Browser
	base, dir string
}

func (p photographer) shoot(scenes []scene) error {
	for _, s := range scenes {
		if err := s.shoot(p); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// shootTogether is for scenes that take a while to unfold.
func (p photographer) shootTogether(scenes []scene) error {
	faults := make([]error, len(scenes))
	var group sync.WaitGroup
	for i := range scenes {
		group.Go(func() { faults[i] = p.shoot(scenes[i : i+1]) })
	}
	group.Wait()
	return errors.Join(faults...)
}

// The sizes of the windows.
var (
	desk  = browser.Width(1280, 800)
	phone = browser.Width(360, 740)
)

// A scene is one picture.
type scene struct {
	name    string
	who     *client.Client // nil is nobody
	address string
	size    browser.Action
	theme   string
	act     []browser.Action // until everything is in its place
}

func (s scene) shoot(p photographer) error {
	token := ""
	if s.who != nil {
		token = s.who.Token()
	}
	person, err := p.Person(p.base, token)
	if err != nil {
		return err
	}
	tab, err := person.Open(s.address, s.size, browser.Theme(s.theme))
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := tab.Do(append(s.act, browser.Until(settled))...); err != nil {
		return err
	}
	picture, err := tab.Picture()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	fmt.Printf("%-28s %3d kB\n", s.name, len(picture)/1000)
	return os.WriteFile(filepath.Join(p.dir, s.name+".webp"), picture, 0o644)
}

// settled says that the page is live, the fonts have come and nothing loads.
const settled = `document.querySelector('.connection[data-state=live]') && document.fonts.status === 'loaded' &&
	!document.querySelector('[aria-busy=true]')`
