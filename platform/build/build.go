// Package build says which build of a program runs: its version, and the revision
// of the sources. The linker sets both, by scripts/version.sh: the Go command finds
// neither in a workspace of several modules. Without the linker's, what the Go command
// knows is the answer.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// The linker sets them: -X github.com/cityconnect/cityconnect/platform/build.version=…
var version, revision string

// unknown stands for what nobody has said.
const unknown = "unknown"

// An Info describes a build.
type Info struct{ Version, Revision, GoVersion string }

// Read returns what is known of this program's build.
func Read() Info {
	module, ok := debug.ReadBuildInfo()
	if !ok {
		module = &debug.BuildInfo{}
	}
	return read(module, version, revision)
}

// read joins the linker's values with the compiler's.
func read(module *debug.BuildInfo, version, revision string) Info {
	found := module.Main.Version
	if found == "(devel)" {
		found = ""
	}
	checkout := ""
	for _, setting := range module.Settings {
		if setting.Key == "vcs.revision" {
			checkout = setting.Value
		}
	}
	revision = cmp.Or(revision, checkout, unknown)
	return Info{Version: cmp.Or(version, found, revision), Revision: revision, GoVersion: runtime.Version()}
}

// String returns the line that --version prints behind a program's name.
func (i Info) String() string {
	return i.Version + " (revision " + i.Revision + ", " + i.GoVersion + ")"
}
