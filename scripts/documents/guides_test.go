package documents

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Guides for people of the city have the same parts in both languages: headings, steps,
// rows of tables and pictures, in the same order. What follows "How it works" is the
// reference of a guide, which is in English alone.
func TestGuidesAreTheSameInBothLanguages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "docs/id/*.md"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d guides, error %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "README.md" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guide, _, _ := strings.Cut(read(t, "docs/"+name), "\n## How it works\n")
			english, indonesian := parts(guide), parts(read(t, "docs/id/"+name))
			for i := range max(len(english), len(indonesian)) {
				if i >= len(english) || i >= len(indonesian) || english[i].kind != indonesian[i].kind {
					t.Fatalf("part %d differs: %q in English, %q in Indonesian", i+1, textOf(english, i), textOf(indonesian, i))
				}
			}
		})
	}
}

// A part is a line of a document that is not just words.
type part struct{ kind, text string }

// parts returns the headings, steps, rows and pictures of a document.
func parts(document string) []part {
	var all []part
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		first, _, _ := strings.Cut(line, " ")
		switch {
		case strings.Contains(line, "](screenshots/") || strings.Contains(line, "](../screenshots/"):
			all = append(all, part{"pictures: " + strings.Join(pictures(line), " "), line})
		case slices.Contains([]string{"#", "##", "###", "-", "|"}, first), strings.HasSuffix(first, ".") && len(first) < 4:
			all = append(all, part{first, line})
		}
	}
	return all
}

// pictures returns the files of the pictures in a line.
func pictures(line string) []string {
	var files []string
	for piece := range strings.SplitSeq(line, "screenshots/") {
		if file, _, found := strings.Cut(piece, ")"); found && strings.HasSuffix(file, ".webp") {
			files = append(files, file)
		}
	}
	return files
}

func textOf(all []part, i int) string {
	if i < len(all) {
		return all[i].text
	}
	return "nothing"
}
