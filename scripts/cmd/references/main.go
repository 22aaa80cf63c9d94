// Command references writes the references of the APIs into a folder, for the
// documentation's site: references docs docs/api
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cityconnect/cityconnect/platform/reference"
)

func main() {
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "references:", err)
		os.Exit(1)
	}
}

func write(docs, folder string) error {
	pages, err := reference.Pages(os.DirFS(docs))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, page := range pages {
		outline := "2" // no menu lists a hundred schemas
		if name == "messages" {
			outline = "[2, 3]"
		}
		page = fmt.Sprintf("---\noutline: %s\n---\n\n%s\n", outline, page)
		if err := os.WriteFile(filepath.Join(folder, name+".md"), []byte(page), 0o644); err != nil {
			return err
		}
	}
	return nil
}
