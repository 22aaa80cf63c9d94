// Package lang has the page's words, for programs that check translations of them. The
// page itself is built from the same files.
package lang

import "embed"

// Files are the words, as part.language.json.
//
//go:embed *.json
var Files embed.FS
