package build

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	checkout := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}}
	for _, tt := range []struct {
		name              string
		module            debug.BuildInfo
		version, revision string // of the linker
		want              Info
	}{
		{"the linker says both", debug.BuildInfo{Main: debug.Module{Version: "v0.0.1"}, Settings: checkout}, "1.2.3", "def", Info{Version: "1.2.3", Revision: "def"}},
		{"a checkout", debug.BuildInfo{Main: debug.Module{Version: "v0.0.1"}, Settings: checkout}, "", "", Info{Version: "v0.0.1", Revision: "abc"}},
		{"a checkout without a version", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: checkout}, "", "", Info{Version: "abc", Revision: "abc"}},
		{"nobody says anything", debug.BuildInfo{}, "", "", Info{Version: "unknown", Revision: "unknown"}},
	} {
		tt.want.GoVersion = runtime.Version()
		if got := read(&tt.module, tt.version, tt.revision); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if line := Read().String(); !strings.Contains(line, runtime.Version()) {
		t.Errorf("this build is %q, want one with %s", line, runtime.Version())
	}
}
