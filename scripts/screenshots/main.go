// Command screenshots takes a picture of every screen of a running stack, in a
// small town that it founds there.
//
//	go run ./scripts/screenshots "$(scripts/stack address)"
//
// Dead letters are something that a healthy stack does not have: with the
// broker's URL (-amqp, as the services have it in RABBITMQ_URL) some are made.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
	"github.com/cityconnect/cityconnect/scripts/internal/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("screenshots", flag.ContinueOnError)
	out := flags.String("out", "docs/screenshots", "folder for the pictures")
	broker := flags.String("amqp", "", "URL of the stack's broker, to make dead letters")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("want the address of a running stack, such as http://127.0.0.1:8080")
	}
	base := flags.Arg(0)
	town, err := found(ctx, client.New(base))
	if err != nil {
		return fmt.Errorf("found the town: %w", err)
	}
	if *broker != "" {
		if err := town.breakMessages(ctx, *broker); err != nil {
			return fmt.Errorf("make dead letters: %w", err)
		}
	}
	b, end, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer end()
	for _, s := range scenes(town) {
		if err := s.shoot(b, base, *out); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
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

func (s scene) shoot(b *browser.Browser, base, dir string) error {
	token := ""
	if s.who != nil {
		token = s.who.Token()
	}
	person, err := b.Person(base, token)
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
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	fmt.Printf("%-28s %3d kB\n", s.name, len(picture)/1000)
	return os.WriteFile(filepath.Join(dir, s.name+".webp"), picture, 0o644)
}

// settled says that the page is live, the fonts have come and nothing loads.
const settled = `document.querySelector('.connection[data-state=live]') && document.fonts.status === 'loaded' &&
	!document.querySelector('[aria-busy=true]')`
