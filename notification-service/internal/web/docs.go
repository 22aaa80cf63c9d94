package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/cityconnect/cityconnect/docs"
	"github.com/cityconnect/cityconnect/platform/reference"
)

//go:embed docs
var docsFiles embed.FS

var docsPage = template.Must(template.ParseFS(docsFiles, "docs/page.html"))

// docsPath has the explanation of each problem, and the references of the API.
// The type of a problem (platform/service) is an address of it.
const docsPath = "/docs"

const (
	apiPage    = "(?:api/)?(problems|report-service|notification-service|messages).md"
	repository = "https://github.com/cityconnect/cityconnect/blob/main/docs/"
)

// served are the addresses at the gateway at which the services serve their documents.
var served = map[string]string{
	"openapi/report-service.yaml":       "/report-service/openapi.json",
	"openapi/notification-service.yaml": "/openapi.json",
}

// makeDocs returns what is below docsPath: pages, and the documents that programs
// read, at the same place as in the repository. It takes a tenth of a second.
func makeDocs() (map[string]*asset, error) {
	index, err := docsFiles.ReadFile("docs/index.markdown")
	if err != nil {
		return nil, err
	}
	style, err := docsFiles.ReadFile("docs/style.css")
	if err != nil {
		return nil, err
	}
	pages, err := reference.Pages(docs.Files)
	if err != nil {
		return nil, err
	}
	pages[""] = string(index)
	// A status at the beginning of a line is not the number of a list.
	pages["problems"] = regexp.MustCompile(`(?m)^(\d{3})\. `).ReplaceAllString(string(docs.Read("problems.md")), "**$1** ")

	made := map[string]*asset{docsPath + "/style.css": newAsset("style.css", style)}
	err = fs.WalkDir(docs.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && served[name] == "" && path.Ext(name) != ".md" {
			made[docsPath+"/"+name] = newAsset(name, docs.Read(name))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for name, markdown := range pages {
		page, err := render([]byte(markdown))
		if err != nil {
			return nil, fmt.Errorf("page %q: %w", name, err)
		}
		made[path.Join(docsPath, name)] = newAsset("page.html", page)
	}
	return made, nil
}

// render makes a page of Markdown: its headings have GitHub's anchors, as in the
// repository.
func render(markdown []byte) ([]byte, error) {
	var main, page bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(
		parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links{}, 0)),
	))
	if err := md.Convert(markdown, &main, parser.WithContext(parser.NewContext(parser.WithIDs(anchors{})))); err != nil {
		return nil, err
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(string(markdown), "# "), "\n")
	err := docsPage.Execute(&page, map[string]any{"Title": title, "Main": template.HTML(main.String())}) //nolint:gosec // our own documents
	return page.Bytes(), err
}

// anchors counts the headings of a page by their anchors.
type anchors map[string]int

// Generate returns an anchor that no heading before it has.
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	anchor := reference.Slug(string(heading))
	before := a[anchor]
	a[anchor]++
	if before > 0 {
		return fmt.Appendf(nil, "%s-%d", anchor, before)
	}
	return []byte(anchor)
}

// Put is for anchors that the document names itself, which ours do not.
func (a anchors) Put([]byte) {}

// links are what leads from one file of the repository to another.
type links struct{}

// Transform sets the address of each link of a page.
func (links) Transform(page *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			link.Destination = []byte(target(string(link.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

var (
	upwards   = regexp.MustCompile(`^(\.\.?/)+`)
	ownPage   = regexp.MustCompile("^" + apiPage + "$")
	elsewhere = regexp.MustCompile(`^[a-z]+:`)
)

// target returns where a link of a page in docs/ leads on the page.
func target(href string) string {
	file, anchor, found := strings.Cut(href, "#")
	if file == "" {
		return href
	}
	if found {
		anchor = "#" + anchor
	}
	name := upwards.ReplaceAllString(strings.TrimPrefix(file, repository), "")
	if address := served[name]; address != "" {
		return address
	}
	if page := ownPage.FindStringSubmatch(name); page != nil {
		return docsPath + "/" + page[1] + anchor
	}
	if _, err := fs.Stat(docs.Files, name); err == nil {
		return docsPath + "/" + name + anchor
	}
	if elsewhere.MatchString(file) {
		return href
	}
	return repository + name + anchor
}
