// Command notices prints the licences of everything that the programs contain
// and others wrote: Go's own library, and the modules that are linked. What the embedded
// page was built from has a file of its own among the page's, which its build writes.
//
//	go run ./scripts/cmd/notices report-service notification-service migrations
//
// The arguments are the folders of the modules whose programs, below cmd, are
// shipped. Dependencies have the versions that these modules name, and not those
// of the workspace, since they are built without it.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ours begins the paths of our own modules.
const ours = "github.com/cityconnect/cityconnect/"

// licence matches the names of the files that have to go with a copy.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, modules []string, out io.Writer) error {
	if len(modules) == 0 {
		return errors.New("usage: notices FOLDER…")
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go's own library: %w", err)
	}
	texts := make(map[string]map[string]bool) // the names of what is under a text, by the text
	if err := add(texts, "the Go standard library", strings.TrimSpace(string(goroot))); err != nil {
		return err
	}
	for _, module := range modules {
		packages, err := linked(ctx, module)
		if err != nil {
			return fmt.Errorf("list what %s links: %w", module, err)
		}
		for _, p := range packages {
			if err := p.add(texts); err != nil {
				return err
			}
		}
	}
	fmt.Fprint(out, "What CityConnect's programs contain and others wrote, under these licences.\nMade by `make notices`.\n")
	type group struct {
		names []string // with their copyrights
		terms string
	}
	groups := make(map[string]*group) // by their terms without what no two print alike
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		copyrights, terms := split(text)
		binding, _, _ := strings.Cut(terms, "END OF TERMS AND CONDITIONS") // Apache's has an appendix, which some leave out
		key := strings.ToLower(strings.Join(strings.Fields(title.ReplaceAllString(binding, "")), " "))
		if groups[key] == nil {
			groups[key] = &group{terms: terms}
		}
		groups[key].names = append(groups[key].names, strings.Join(append(slices.Sorted(maps.Keys(texts[text])), copyrights...), "\n"))
	}
	for _, g := range slices.SortedFunc(maps.Values(groups), func(a, b *group) int { return cmp.Compare(a.names[0], b.names[0]) }) {
		fmt.Fprintf(out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 78), strings.Join(g.names, "\n"), g.terms)
	}
	return nil
}

// copyright matches the lines that name who has the rights, and blank ones between them.
var copyright = regexp.MustCompile(`(?im)^[^\w\n]*(copyright (\(c\)|©|\d).*|all rights reserved\.?)$`)

// title matches the name above the terms, which some leave out.
var title = regexp.MustCompile(`(?im)^[^\w\n]*(the )?(mit|bsd \d-clause) licen[cs]e( \(mit\))?[^\w\n]*$`)

// split returns who has the rights on what is under a licence, each in a line, and the terms,
// which many share but for their line breaks.
func split(text string) (copyrights []string, terms string) {
	for _, line := range copyright.FindAllString(text, -1) {
		copyrights = append(copyrights, "    "+strings.TrimSpace(line))
	}
	terms = strings.Trim(copyright.ReplaceAllString(text, ""), "\n")
	return copyrights, regexp.MustCompile(`\n{3,}`).ReplaceAllString(terms, "\n\n")
}

// A goPackage is what `go list` tells of one.
type goPackage struct {
	Dir    string
	Module *struct{ Path, Version, Dir string }
}

// linked lists the foreign packages in the programs of a module, by their folders.
func linked(ctx context.Context, module string) ([]goPackage, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Module", "./cmd/...")
	list.Dir, list.Stderr = module, os.Stderr
	list.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux")
	described, err := list.Output()
	if err != nil {
		return nil, err
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(described)); decoder.More(); {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		if p.Module != nil && !strings.HasPrefix(p.Module.Path, ours) {
			packages = append(packages, p)
		}
	}
	slices.SortFunc(packages, func(a, b goPackage) int { return cmp.Compare(a.Dir, b.Dir) })
	return packages, nil
}

// add adds the licences of a package: those of its module, and those that lie in
// the folders between, which hold what the module took from elsewhere.
func (p goPackage) add(texts map[string]map[string]bool) error {
	name := p.Module.Path + " " + p.Module.Version
	if err := add(texts, name, p.Module.Dir); err != nil {
		return err
	}
	for dir := p.Dir; dir != p.Module.Dir; dir = filepath.Dir(dir) {
		if err := add(texts, name, dir); err != nil && !errors.Is(err, errNone) {
			return err
		}
	}
	return nil
}

var errNone = errors.New("there is no licence")

// add adds the files of dir that are licences to texts, as those of name.
func add(texts map[string]map[string]bool, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !licence.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("read a licence of %s: %w", name, err)
		}
		key := strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n") + "\n"
		if texts[key] == nil {
			texts[key] = make(map[string]bool)
		}
		texts[key][name], found = true, true
	}
	if !found {
		return fmt.Errorf("%s: %w in %s", name, errNone, dir)
	}
	return nil
}
