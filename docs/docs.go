// Package docs embeds the documents that programs serve: requests are checked
// against them, and the pages below /docs/ are made from them.
package docs

import "embed"

// Files has what is below docs/, by the same paths.
//
//go:embed problems.md asyncapi.yaml openapi/*-service.yaml openapi/open311.yaml schemas
var Files embed.FS

// Read returns a document, which must be among Files.
func Read(name string) []byte {
	document, err := Files.ReadFile(name)
	if err != nil {
		panic(err) // the name is a constant
	}
	return document
}
