package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// shootMails takes pictures of every mail, in both languages and both themes, as
// wide as a phone and as long as the mail. It is called in the root of the
// repository.
func (p photographer) shootMails(ctx context.Context) error {
	program := exec.CommandContext(ctx, "go", "run", "./notification-service/internal/email/examples")
	program.Stderr = os.Stderr
	encoded, err := program.Output()
	if err != nil {
		return fmt.Errorf("write examples of mails: %w", err)
	}
	var mails map[string]map[string]string // by language and kind
	if err := json.Unmarshal(encoded, &mails); err != nil {
		return fmt.Errorf("read examples of mails: %w", err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		language, kind, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, mails[language][kind])
	}))
	defer server.Close()
	reader, err := p.Person(server.URL, "")
	if err != nil {
		return err
	}
	defer reader.Close()
	for language, kinds := range mails {
		for kind := range kinds {
			for _, theme := range []string{"light", "dark"} {
				name := fmt.Sprintf("mail-%s-%s-%s", strings.ReplaceAll(kind, ".", "-"), language, theme)
				if err := p.shootMail(reader, language+"/"+kind, theme, name); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	return nil
}

func (p photographer) shootMail(reader *browser.Person, address, theme, name string) error {
	tab, err := reader.Open(address, browser.Width(360, 100), browser.Theme(theme))
	if err != nil {
		return err
	}
	defer tab.Close()
	height, err := browser.Ask[int](tab, `document.documentElement.scrollHeight`)
	if err != nil {
		return err
	}
	if err := tab.Do(browser.Width(360, height)); err != nil {
		return err
	}
	picture, err := tab.Picture()
	if err != nil {
		return err
	}
	dir := filepath.Join(p.dir, "mails")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".webp"), picture, 0o644)
}
